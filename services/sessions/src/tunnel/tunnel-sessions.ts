import type { Context } from '@overlay/rpc'
import { type FindSession, holderContext } from '../access/find-session.js'
import type { CheckRouter } from '../domain/router-access.js'
import type { HeldSession } from '../store/session.js'
import type { RouterSession } from './router-sessions.js'

export interface TunnelSessionDeps {
  readonly findSession: FindSession
  readonly checkRouter: CheckRouter
}

/** A session of a router. */
export interface TunnelSession extends HeldSession {
  readonly serviceId: string
}

/** The router as the caller of other services. */
export const routerContext = (router: RouterSession): Context =>
  holderContext({ ...router, apiSessionId: router.id })

/** Finds or creates sessions of routers for themselves. Throws AccessRefused. */
export const tunnelSessions =
  ({ findSession, checkRouter }: TunnelSessionDeps) =>
  async (router: RouterSession, serviceId: string, type: 'Dial' | 'Bind'): Promise<TunnelSession> => {
    const holder = { ...router, apiSessionId: router.id, hasAccessToken: false }
    const held = await findSession(holder, serviceId, type)
    await checkRouter(router.identityId, router.identityId, serviceId)
    return { ...held, serviceId }
  }
