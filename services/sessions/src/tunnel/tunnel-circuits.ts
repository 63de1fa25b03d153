import {
  CreateCircuitForServiceRequest,
  CreateCircuitForServiceResponse,
  CreateTunnelCircuitV2Request,
  CreateTunnelCircuitV2Response,
  edgeType,
} from '@overlay/channel'
import type { Logger } from 'pino'
import { type Handler, onMessage } from '../channel/handlers.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { openDials } from '../circuits/answer-dial.js'
import type { Circuits, OpenedCircuit } from '../circuits/circuits.js'
import type { TunnelDeps } from './tunnel-deps.js'
import { apiSessionAnswer, sessionAnswer } from './tunnel-responses.js'

export interface TunnelCircuitDeps extends TunnelDeps {
  readonly circuits: Pick<Circuits, 'open' | 'end'>
  readonly log: Logger
}

type Request = Pick<CreateTunnelCircuitV2Request, 'serviceName' | 'terminatorInstanceId' | 'peerData'>

/** Routers dial services themselves. */
export function tunnelCircuits({
  routerSessions,
  session,
  services,
  circuits,
  log,
}: TunnelCircuitDeps): readonly Handler[] {
  const dial = openDials({ end: circuits.end, log })
  const name = 'CreateTunnelCircuit'

  async function open(router: RouterChannel, request: Request) {
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
    return { ...opened, apiSession, held }
  }

  return [
    onMessage(edgeType.createCircuitForService, CreateCircuitForServiceRequest, (request, message, router) =>
      dial(message, router, {
        name,
        open: () => open(router, request),
        encode: ({ apiSession, held, ...circuit }) => {
          const isNews = routerSessions.isNews(router, apiSession)
          return {
            type: edgeType.createCircuitForServiceResponse,
            body: CreateCircuitForServiceResponse.encode({
              ...circuitAnswer(circuit),
              apiSession: isNews ? apiSessionAnswer(apiSession) : undefined,
              session: sessionAnswer(held),
            }).finish(),
          }
        },
      }),
    ),

    onMessage(edgeType.createTunnelCircuitV2, CreateTunnelCircuitV2Request, (request, message, router) =>
      dial(message, router, {
        name,
        open: () => open(router, request),
        encode: (circuit) => ({
          type: edgeType.createTunnelCircuitV2Response,
          body: CreateTunnelCircuitV2Response.encode(circuitAnswer(circuit)).finish(),
        }),
      }),
    ),
  ]
}

const circuitAnswer = ({ id, address, peerData, tags }: OpenedCircuit): CreateTunnelCircuitV2Response => ({
  circuitId: id,
  address,
  peerData: new Map(peerData),
  tags: new Map(Object.entries(tags)),
})
