import {
  CreateCircuitForServiceRequest,
  CreateCircuitForServiceResponse,
  CreateTunnelCircuitV2Request,
  CreateTunnelCircuitV2Response,
  edgeType,
} from '@overlay/channel'
import type { Circuits } from '../circuits/circuits.js'
import { answer, refused } from '../control/answers.js'
import { type Handler, onMessage } from '../control/handlers.js'
import type { RouterChannel } from '../control/router-channel.js'
import { traced } from '../control/traced.js'
import { apiSessionAnswer, sessionAnswer } from './answers.js'
import type { TunnelDeps } from './deps.js'

export interface TunnelCircuitDeps extends TunnelDeps {
  readonly circuits: Pick<Circuits, 'open'>
}

/** Routers dial services themselves. */
export function tunnelCircuits({
  routerSessions,
  session,
  services,
  circuits,
}: TunnelCircuitDeps): readonly Handler[] {
  const open = (router: RouterChannel, request: CreateTunnelCircuitV2Request) =>
    traced('CreateTunnelCircuit', () => openUntraced(router, request))

  async function openUntraced(router: RouterChannel, request: CreateTunnelCircuitV2Request) {
    const { serviceName, terminatorInstanceId: instanceId, peerData } = request
    const apiSession = await routerSessions.of(router)
    const { id: serviceId } = await services.named(serviceName)
    const held = await session(apiSession, serviceId, 'Dial')
    const { routerId } = router
    const opened = await circuits.open({
      routerId,
      sessionId: held.id,
      identityId: apiSession.identityId,
      serviceId,
      instanceId,
      peerData,
    })
    const circuit = {
      circuitId: opened.id,
      address: opened.address,
      peerData: new Map(opened.peerData),
      tags: new Map(Object.entries(opened.tags)),
    }
    return { apiSession, held, circuit }
  }

  return [
    onMessage(edgeType.createCircuitForService, CreateCircuitForServiceRequest, (request, message, router) =>
      answer(router, message, refused, async () => {
        const { apiSession, held, circuit } = await open(router, request)
        const isNews = routerSessions.isNews(router, apiSession)
        return {
          type: edgeType.createCircuitForServiceResponse,
          body: CreateCircuitForServiceResponse.encode({
            ...circuit,
            apiSession: isNews ? apiSessionAnswer(apiSession) : undefined,
            session: sessionAnswer(held),
          }).finish(),
        }
      }),
    ),

    onMessage(edgeType.createTunnelCircuitV2, CreateTunnelCircuitV2Request, (request, message, router) =>
      answer(router, message, refused, async () => ({
        type: edgeType.createTunnelCircuitV2Response,
        body: CreateTunnelCircuitV2Response.encode((await open(router, request)).circuit).finish(),
      })),
    ),
  ]
}
