import { CreateApiSessionRequest, CreateApiSessionResponse, edgeErrorCode, edgeType } from '@overlay/channel'
import type {
  EntityServiceService,
  IdentityServiceService,
  Methods,
  PolicyServiceService,
} from '@overlay/rpc'
import type { Logger } from 'pino'
import { type Concern, onMessage } from '../channel/handlers.js'
import { answer, refused } from '../channel/replies.js'
import type { Circuits } from '../circuits/circuits.js'
import { AccessRefused } from '../domain/router-access.js'
import type { NetworkRouter } from '../routers/router-directory.js'
import type { ServiceDirectory, ServiceInfo } from '../terminators/service-directory.js'
import type { Terminators } from '../terminators/terminators-concern.js'
import { endOrHostAgain, type HostAgainDeps } from './host-again.js'
import { openRouterSessions, type RouterSessionDeps } from './router-sessions.js'
import { routerTerminators } from './router-terminators.js'
import { serviceListHandler } from './service-list-handler.js'
import { tunnelCircuits } from './tunnel-circuits.js'
import { apiSessionAnswer } from './tunnel-responses.js'
import { type TunnelSessionDeps, tunnelSessions } from './tunnel-sessions.js'
import { tunnelTerminators } from './tunnel-terminators.js'

export interface TunnelOptions extends TunnelSessionDeps, Pick<RouterSessionDeps, 'apiSessions' | 'now'> {
  readonly identity: Pick<Methods<IdentityServiceService>, 'openRouterSession'>
  readonly policy: {
    readonly calls: Pick<Methods<PolicyServiceService>, 'getHeader'>
    readonly entities: Pick<Methods<EntityServiceService>, 'list'>
  }
  readonly directory: { get(routerId: string): Pick<NetworkRouter, 'isEdge'> | undefined }
  readonly services: Pick<ServiceDirectory, 'find' | 'findByName'>
  readonly terminators: Pick<Terminators, 'create' | 'update' | 'remove' | 'endOfSessions'>
  readonly changeLog: HostAgainDeps['changeLog']
  readonly presence: HostAgainDeps['presence']
  readonly circuits: Pick<Circuits, 'open' | 'end'>
  readonly log: Logger
}

/** Routers that are identities themselves: they dial and host services for applications that know nothing of it. */
export function tunnelConcern(options: TunnelOptions): Concern & Pick<Terminators, 'endOfSessions'> {
  const { policy } = options
  const routerSessions = openRouterSessions(options)
  const services = {
    named: async (name: string) => existing(await options.services.findByName(name)),
    withId: async (id: string) => existing(await options.services.find(id)),
  }
  const deps = { ...options, routerSessions, services, session: tunnelSessions(options) }
  return {
    handlers: [
      // wire: the process of a router with a tunnel listener exits if this fails
      onMessage(edgeType.createApiSession, CreateApiSessionRequest, (request, message, router) =>
        answer(router, message, refused, async () => {
          const session = await routerSessions.open(router, request)
          routerSessions.isNews(router, session)
          return {
            type: edgeType.createApiSessionResponse,
            body: CreateApiSessionResponse.encode(apiSessionAnswer(session)).finish(),
          }
        }),
      ),
      serviceListHandler({ routerSessions, policy: policy.calls, services: policy.entities }),
      ...tunnelTerminators(deps),
      ...routerTerminators(deps),
      ...tunnelCircuits(deps),
    ],
    disconnected: routerSessions.forget,
    endOfSessions: endOrHostAgain(deps),
  }
}

function existing(service: ServiceInfo | undefined): ServiceInfo {
  if (!service) throw new AccessRefused(edgeErrorCode.invalidService, 'invalid service')
  return service
}
