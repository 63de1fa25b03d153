import {
  CreateTerminatorRequest,
  CreateTerminatorResult,
  CreateTerminatorV2Request,
  CreateTerminatorV2Response,
  edgeErrorCode,
  edgeType,
  encodeText,
  type Outgoing,
  TerminatorRetryHint,
} from '@overlay/channel'
import { newId } from '@overlay/store/kind-store'
import { isAway } from '@overlay/store/postgres'
import { type Handler, onMessage } from '../channel/handlers.js'
import { answer, refused, textOf } from '../channel/replies.js'
import { AccessRefused, type CheckAccess } from '../domain/router-access.js'
import { isIdentifier } from '../domain/router-text.js'
import type { NewTerminator } from '../store/router-terminator.js'
import { TerminatorConflict } from './create-terminators.js'
import type { ServiceDirectory } from './service-directory.js'
import { invalid, membersOf } from './terminator-requests.js'
import type { openValidation } from './validate-terminators.js'

export interface CreateDeps {
  readonly checkAccess: CheckAccess
  readonly services: Pick<ServiceDirectory, 'find'>
  readonly create: (terminator: NewTerminator) => Promise<void>
  readonly validation: Pick<ReturnType<typeof openValidation>, 'settled'>
}

const EDGE_BINDING = 'edge'

/** Routers create terminators for their clients, in two generations of messages. */
export function createHandlers(deps: CreateDeps): readonly Handler[] {
  return [
    onMessage(edgeType.createTerminatorV2, CreateTerminatorV2Request, (request, message, router) => {
      const { address } = request
      const failure = (err: unknown) => createdV2(address, resultOf(err), textOf(err))
      return answer(router, message, failure, async () => {
        if (address === '') throw invalid('provided terminator id is blank')
        if (!isIdentifier(address)) throw invalid('invalid terminator id')
        await createForClient(deps, router.routerId, address, address, request)
        return createdV2(address, CreateTerminatorResult.SUCCESS)
      })
    }),

    onMessage(edgeType.createTerminator, CreateTerminatorRequest, (request, message, router) =>
      answer(router, message, refused, async () => {
        const id = newId('base62')
        await createForClient(deps, router.routerId, id, `hosted:${request.sessionToken}`, request)
        return { type: edgeType.createTerminatorResponse, body: encodeText(id) }
      }),
    ),
  ]
}

/** The members that the requests of both generations have. */
type ClientRequest = Pick<
  CreateTerminatorV2Request,
  | 'sessionToken'
  | 'apiSessionToken'
  | 'fingerprints'
  | 'peerData'
  | 'cost'
  | 'precedence'
  | 'instanceId'
  | 'instanceSecret'
>

async function createForClient(
  { checkAccess, services, create, validation }: CreateDeps,
  routerId: string,
  id: string,
  address: string,
  request: ClientRequest,
): Promise<void> {
  const { sessionToken, apiSessionToken, fingerprints } = request
  await validation.settled(routerId) // the router may create again what it has just reported as unknown
  const claim = { routerId, sessionToken, apiSessionToken, fingerprints, type: 'Bind' } as const
  const { sessionId, identityId, serviceId } = await checkAccess(claim)
  if (!(await services.find(serviceId)))
    throw new AccessRefused(edgeErrorCode.invalidService, 'invalid service')
  const own = { id, address, routerId, serviceId, sessionId, binding: EDGE_BINDING, hostId: identityId }
  await create({ ...own, ...membersOf(id, request), isSystem: true, isByRouter: false })
}

function resultOf(err: unknown): CreateTerminatorResult {
  if (err instanceof TerminatorConflict) return CreateTerminatorResult.ID_CONFLICT
  if (isAway(err)) return CreateTerminatorResult.BUSY
  return err instanceof AccessRefused && err.code === edgeErrorCode.invalidSession
    ? CreateTerminatorResult.INVALID_SESSION
    : CreateTerminatorResult.OTHER
}

/** wire: routers find the terminator of an answer by its id alone. */
const createdV2 = (terminatorId: string, result: CreateTerminatorResult, message = ''): Outgoing => ({
  type: edgeType.createTerminatorV2Response,
  body: CreateTerminatorV2Response.encode({
    terminatorId,
    result,
    message,
    errorCode: 0,
    retryHint: TerminatorRetryHint.DEFAULT,
  }).finish(),
})
