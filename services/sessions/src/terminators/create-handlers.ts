import {
  CreateTerminatorRequest,
  CreateTerminatorV2Request,
  CreateTerminatorV2Response,
  edgeErrorCode,
  edgeType,
  encodeText,
  type Outgoing,
} from '@overlay/channel'
import { newId } from '@overlay/store/kind-store'
import { type Handler, onMessage } from '../channel/handlers.js'
import { answer, refused, textOf } from '../channel/replies.js'
import { type AccessClaim, AccessRefused, type CheckAccess } from '../domain/router-access.js'
import { isIdentifier } from '../domain/router-text.js'
import type { NewTerminator } from '../store/router-terminator.js'
import { type CreationOutcome, created, creationFailure } from './creation-outcome.js'
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
    onMessage(edgeType.createTerminatorV2, CreateTerminatorV2Request, (request, message, router, spend) => {
      const { address } = request
      const failure = (err: unknown) => createdV2(address, creationFailure(router, err), textOf(err))
      return answer(router, message, failure, async () => {
        if (address === '') throw invalid('provided terminator id is blank')
        if (!isIdentifier(address)) throw invalid('invalid terminator id')
        await createForClient(deps, router.routerId, address, address, { ...request, spend })
        return createdV2(address, created)
      })
    }),

    onMessage(edgeType.createTerminator, CreateTerminatorRequest, (request, message, router, spend) =>
      answer(router, message, refused, async () => {
        const id = newId('base62')
        await createForClient(deps, router.routerId, id, `hosted:${request.sessionToken}`, {
          ...request,
          spend,
        })
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
> &
  Pick<AccessClaim, 'spend'>

async function createForClient(
  { checkAccess, services, create, validation }: CreateDeps,
  routerId: string,
  id: string,
  address: string,
  request: ClientRequest,
): Promise<void> {
  const { sessionToken, apiSessionToken, fingerprints, spend } = request
  await validation.settled(routerId) // the router may create again what it has just reported as unknown
  const claim = { routerId, sessionToken, apiSessionToken, fingerprints, type: 'Bind', spend } as const
  const { sessionId, identityId, serviceId } = await checkAccess(claim)
  if (!(await services.find(serviceId)))
    throw new AccessRefused(edgeErrorCode.invalidService, 'invalid service')
  const own = { id, address, routerId, serviceId, sessionId, binding: EDGE_BINDING, hostId: identityId }
  await create({ ...own, ...membersOf(id, request), isSystem: true, isByRouter: false })
}

/** wire: routers find the terminator of an answer by its id alone. */
const createdV2 = (terminatorId: string, outcome: CreationOutcome, message = ''): Outgoing => ({
  type: edgeType.createTerminatorV2Response,
  body: CreateTerminatorV2Response.encode({ terminatorId, message, ...outcome }).finish(),
})
