import type { ServiceInfo } from '../terminators/service-directory.js'
import type { RouterSession, RouterSessions } from './router-sessions.js'
import type { TunnelSession } from './tunnel-sessions.js'

/** What the messages of routers that are identities need. All throw AccessRefused. */
export interface TunnelDeps {
  readonly routerSessions: RouterSessions
  /** Finds or creates a session of a router for itself. */
  readonly session: (
    router: RouterSession,
    serviceId: string,
    type: 'Dial' | 'Bind',
  ) => Promise<TunnelSession>
  readonly services: {
    named(name: string): Promise<ServiceInfo>
    withId(id: string): Promise<ServiceInfo>
  }
}
