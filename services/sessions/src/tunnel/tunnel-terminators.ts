import {
  CreateTunnelTerminatorRequest,
  CreateTunnelTerminatorResponse,
  CreateTunnelTerminatorV2Request,
  CreateTunnelTerminatorV2Response,
  decodeBool,
  edgeErrorCode,
  edgeType,
  type Outgoing,
  tunnelHealthHeader,
  UpdateTunnelTerminatorRequest,
} from '@overlay/channel'
import { type Handler, onMessage } from '../channel/handlers.js'
import { answer, refused, textOf } from '../channel/replies.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { AccessRefused } from '../domain/router-access.js'
import { isIdentifier } from '../domain/router-text.js'
import { actorOf } from '../terminators/actor.js'
import { type CreationOutcome, created, creationFailure } from '../terminators/creation-outcome.js'
import { changesIn, countHealth, membersOf, removeAll } from '../terminators/terminator-requests.js'
import type { Terminators } from '../terminators/terminators-concern.js'
import { TUNNEL_BINDING } from './host-again.js'
import type { TunnelDeps } from './tunnel-deps.js'
import { apiSessionAnswer, sessionAnswer } from './tunnel-responses.js'

export interface TunnelTerminatorDeps extends TunnelDeps {
  readonly terminators: Pick<Terminators, 'create' | 'update' | 'remove'>
}

type Request = Pick<
  CreateTunnelTerminatorRequest,
  'address' | 'cost' | 'precedence' | 'peerData' | 'instanceId' | 'instanceSecret'
>

/** Routers host services themselves. differs: every request is answered, so that routers need not wait for a timeout. */
export function tunnelTerminators(deps: TunnelTerminatorDeps): readonly Handler[] {
  const { routerSessions, session, services, terminators } = deps
  const { update, remove } = terminators

  async function create(router: RouterChannel, serviceId: string, request: Request) {
    const { address } = request
    if (address === '')
      throw new AccessRefused(edgeErrorCode.invalidTerminator, 'provided terminator id is blank')
    if (!isIdentifier(address))
      throw new AccessRefused(edgeErrorCode.invalidTerminator, 'invalid terminator id')
    const apiSession = await routerSessions.of(router)
    const held = await session(apiSession, serviceId, 'Bind')
    const { routerId } = router
    const own = { id: address, address, routerId, serviceId, sessionId: held.id, binding: TUNNEL_BINDING }
    const members = membersOf(address, request)
    const hostId = apiSession.identityId
    await terminators.create({ ...own, ...members, hostId, isSystem: true, isByRouter: false })
    return { apiSession, held }
  }

  return [
    onMessage(edgeType.createTunnelTerminator, CreateTunnelTerminatorRequest, (request, message, router) =>
      answer(router, message, refused, async () => {
        const service = await services.named(request.serviceName)
        const { apiSession, held } = await create(router, service.id, request)
        const isNews = routerSessions.isNews(router, apiSession)
        return {
          type: edgeType.createTunnelTerminatorResponse,
          body: CreateTunnelTerminatorResponse.encode({
            apiSession: isNews ? apiSessionAnswer(apiSession) : undefined,
            session: sessionAnswer(held),
            terminatorId: request.address,
            startTime: request.startTime,
          }).finish(),
        }
      }),
    ),

    onMessage(
      edgeType.createTunnelTerminatorV2,
      CreateTunnelTerminatorV2Request,
      (request, message, router) => {
        const { address: terminatorId, serviceId, startTime } = request
        const response = (outcome: CreationOutcome, text: string): Outgoing => ({
          type: edgeType.createTunnelTerminatorV2Response,
          body: CreateTunnelTerminatorV2Response.encode({
            ...{ terminatorId, startTime, message: text },
            ...outcome,
          }).finish(),
        })
        // wire: routers with the data model wait for no reply, and find the terminator of an answer by its id
        const failure = (err: unknown): Outgoing =>
          router.features.hasDataModel
            ? response(creationFailure(router, err), textOf(err))
            : refused(err, router)
        return answer(router, message, failure, async () => {
          const { id } = await services.withId(serviceId)
          await create(router, id, request)
          return response(created, '')
        })
      },
    ),

    onMessage(edgeType.updateTunnelTerminator, UpdateTunnelTerminatorRequest, (request, message, router) =>
      answer(router, message, refused, async () => {
        const { routerId } = router
        const changes = changesIn(request)
        const by = actorOf(routerId)
        const asked = {
          id: request.terminatorId,
          routerId,
          binding: TUNNEL_BINDING,
          asking: 'itself',
        } as const
        await update({ ...asked, ...changes, by })
        return { type: edgeType.updateTunnelTerminatorResponse }
      }),
    ),

    {
      type: edgeType.removeTunnelTerminator,
      prepare: (message, router) => () =>
        answer(router, message, refused, async () => {
          await removeAll(remove, [message.body.toString()], router.routerId)
          return { type: edgeType.removeTunnelTerminatorResponse }
        }),
    },

    {
      type: edgeType.tunnelHealthEvent,
      prepare({ headers }) {
        const passed = headers.get(tunnelHealthHeader.checkPassed)
        if (!passed) throw new Error('health event without a result')
        return () => countHealth(decodeBool(passed))
      },
    },
  ]
}
