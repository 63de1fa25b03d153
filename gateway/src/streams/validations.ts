import {
  ValidateAllTerminatorsRequest,
  ValidatedComponent,
  ValidateModelRequest,
  ValidateRoutersRequest,
} from '@overlay/channel'
import {
  type Context,
  eachReplica,
  Fault,
  type Methods,
  type Peers,
  SessionsServiceService,
  type ValidateRequest,
  Validation,
  type ValidationPart,
} from '@overlay/rpc'
import { RefusedRequest } from './subscriptions.js'

/** A request of the management channel to compare routers with the controllers. */
export interface ValidationKind {
  /** Content types of the answer and of the results that follow. */
  readonly answer: number
  readonly result: number
  readonly read: (body: Buffer) => ValidateRequest
}

/** The first part has the count of all results. */
export type Validate = (request: ValidateRequest, context: Context) => AsyncIterable<ValidationPart>

const ofRouters =
  (what: Validation) =>
  (body: Buffer): ValidateRequest => ({
    what,
    filter: ValidateRoutersRequest.decode(body).filter,
    fix: false,
  })

function ofTerminators(body: Buffer): ValidateRequest {
  const { filter, fixInvalid, expectedPerHost, expectedPerServiceAndHost } =
    ValidateAllTerminatorsRequest.decode(body)
  if (expectedPerHost + expectedPerServiceAndHost > 0)
    throw new RefusedRequest('terminators cannot be compared with expected numbers')
  return { what: Validation.VALIDATION_TERMINATORS, filter, fix: fixInvalid }
}

function ofModels(body: Buffer): ValidateRequest {
  const { filter, fix } = ValidateModelRequest.decode(body)
  return { what: Validation.VALIDATION_MODEL, filter, fix }
}

/** wire: by content type of the request. */
export const validationKinds: ReadonlyMap<number, ValidationKind> = new Map<number, ValidationKind>([
  [10_100, { answer: 10_101, result: 10_102, read: ofTerminators }],
  [10_103, { answer: 10_104, result: 10_105, read: ofRouters(Validation.VALIDATION_LINKS) }],
  [10_106, { answer: 10_107, result: 10_108, read: ofRouters(Validation.VALIDATION_SDK_TERMINATORS) }],
  [10_109, { answer: 10_110, result: 10_111, read: ofModels }],
  [10_112, { answer: 10_113, result: 10_114, read: ofRouters(Validation.VALIDATION_CONNECTIONS) }],
  [10_115, { answer: 10_116, result: 10_117, read: ofRouters(Validation.VALIDATION_TUNNEL_TERMINATORS) }],
  [10_118, { answer: 10_119, result: 10_120, read: ofRouters(Validation.VALIDATION_CIRCUITS) }],
])

/** Any replica validates what is stored; a data model, only the one at which its router subscribes. */
export const validator =
  (sessions: Pick<Methods<typeof SessionsServiceService>, 'validate'>, peers: Peers): Validate =>
  (request, context) =>
    request.what === Validation.VALIDATION_MODEL
      ? modelsOf(
          eachReplica(SessionsServiceService, peers).map(({ methods }) => methods),
          request,
          context,
        )
      : sessions.validate(request, context)

/** Of each router the result of the replica that has its subscription. */
export async function* modelsOf(
  replicas: readonly Pick<Methods<typeof SessionsServiceService>, 'validate'>[],
  request: ValidateRequest,
  context: Context,
): AsyncGenerator<ValidationPart> {
  const found = new Map<string, ValidatedComponent>()
  async function ask({ validate }: (typeof replicas)[number]): Promise<void> {
    for await (const { results } of validate(request, context))
      for (const result of results) {
        const component = ValidatedComponent.decode(result)
        const { componentId, componentType } = component
        if (componentType !== '' || !found.has(componentId)) found.set(componentId, component)
      }
  }
  const asked = await Promise.allSettled(replicas.map(ask))
  if (!asked.some(({ status }) => status === 'fulfilled'))
    throw asked.find((one) => one.status === 'rejected')?.reason ?? new Fault('UNAVAILABLE')
  yield { count: found.size, results: [] }
  const results = [...found.values()].map((component) =>
    Buffer.from(ValidatedComponent.encode({ ...component, componentType: 'router' }).finish()),
  )
  yield { count: 0, results }
}
