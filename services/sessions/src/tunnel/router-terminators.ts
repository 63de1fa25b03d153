import { CreateFabricTerminatorRequest, ctrlType, edgeErrorCode } from '@overlay/channel'
import { newId } from '@overlay/store/kind-store'
import { type Handler, onMessage } from '../channel/handlers.js'
import { answer, failed, succeeded } from '../channel/replies.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { AccessRefused } from '../domain/router-access.js'
import { isIdentifier, isShowable } from '../domain/router-text.js'
import type { NetworkRouter } from '../routers/router-directory.js'
import type { NewTerminator } from '../store/router-terminator.js'
import { membersOf } from '../terminators/terminator-requests.js'
import type { Terminators } from '../terminators/terminators-concern.js'
import type { TunnelDeps } from './tunnel-deps.js'

export interface RouterTerminatorDeps extends TunnelDeps {
  readonly directory: { get(routerId: string): Pick<NetworkRouter, 'isEdge'> | undefined }
  readonly terminators: Pick<Terminators, 'create'>
}

type Right = Pick<NewTerminator, 'sessionId' | 'hostId' | 'isByRouter'>

/**
 * Routers create terminators for addresses of their own.
 * differs: the original asks for no right. Here either policy lets the identity of the router bind the service, and the
 * terminator ends with the bind session; or an administrator has created a terminator for this router and service, and
 * it ends with that one.
 */
export function routerTerminators(deps: RouterTerminatorDeps): readonly Handler[] {
  const { routerSessions, session, services, directory, terminators } = deps

  async function rightOf(router: RouterChannel, serviceId: string): Promise<Right> {
    try {
      const apiSession = await routerSessions.of(router)
      const held = await session(apiSession, serviceId, 'Bind')
      return { sessionId: held.id, hostId: apiSession.identityId, isByRouter: false }
    } catch (err) {
      if (!(err instanceof AccessRefused)) throw err
      return { sessionId: null, hostId: '', isByRouter: true } // if there is a terminator of an administrator
    }
  }

  async function create(router: RouterChannel, request: CreateFabricTerminatorRequest): Promise<string> {
    const { routerId } = router
    if (!directory.get(routerId)?.isEdge)
      throw new AccessRefused(edgeErrorCode.invalidEdgeRouter, 'a transit router hosts no services')
    const { address } = request
    const binding = request.binding || (address.startsWith('udp:') ? 'udp' : 'transport')
    if (address === '') throw invalid('address is required')
    if (!isShowable(address) || !isIdentifier(binding)) throw invalid('invalid address or binding')
    const { id: serviceId } = await services.withId(request.serviceId)
    const id = newId('base62')
    const right = await rightOf(router, serviceId)
    const own = { id, address, routerId, serviceId, binding, isSystem: false }
    await terminators.create({ ...own, ...right, ...membersOf(id, request) })
    return id
  }

  return [
    onMessage(ctrlType.createTerminator, CreateFabricTerminatorRequest, (request, message, router) =>
      answer(router, message, failed, async () => succeeded(await create(router, request))),
    ),
  ]
}

const invalid = (text: string) => new AccessRefused(edgeErrorCode.invalidTerminator, text)
