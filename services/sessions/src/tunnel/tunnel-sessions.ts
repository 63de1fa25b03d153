import { edgeErrorCode } from '@overlay/channel'
import { type Context, Fault, type Methods, ownContext, type SessionsServiceService } from '@overlay/rpc'
import type { Database } from '@overlay/store/postgres'
import { AccessRefused, type CheckRouter } from '../domain/router-access.js'
import { TUNNEL_CALL_MS } from '../limits.js'
import { type HeldSession, heldSessions } from '../store/session.js'
import type { RouterSession } from './router-sessions.js'

export interface TunnelSessionDeps {
  readonly db: Database
  readonly createSession: Methods<SessionsServiceService>['createSession']
  readonly checkRouter: CheckRouter
}

/** A session of a router. */
export interface TunnelSession extends HeldSession {
  readonly serviceId: string
}

/** The router as the caller of other services. */
export const routerContext = ({ id, identityId, identityName, configTypes }: RouterSession): Context => ({
  ...ownContext(AbortSignal.timeout(TUNNEL_CALL_MS)),
  caller: { identityId, identityName, apiSessionId: id, isAdmin: false, configTypes },
})

/** Finds or creates sessions of routers for themselves, by the rules of every client. Throws AccessRefused. */
export function tunnelSessions({ db, createSession, checkRouter }: TunnelSessionDeps) {
  const find = heldSessions(db)
  return async (router: RouterSession, serviceId: string, type: 'Dial' | 'Bind'): Promise<TunnelSession> => {
    const key = { apiSessionId: router.id, serviceId, type }
    let held = await find(key)
    if (!held) {
      await create(createSession, router, serviceId, type)
      held = await find(key) // with its stored token: no client holds it
    }
    if (!held) throw new AccessRefused(edgeErrorCode.invalidSession, 'invalid session')
    await checkRouter(router.identityId, router.identityId, serviceId)
    return { ...held, serviceId }
  }
}

async function create(
  createSession: TunnelSessionDeps['createSession'],
  router: RouterSession,
  serviceId: string,
  type: 'Dial' | 'Bind',
): Promise<void> {
  try {
    const request = { serviceId, type, tags: Buffer.alloc(0), apiSessionAt: undefined, hasAccessToken: false }
    await createSession(request, routerContext(router))
  } catch (err) {
    throw refusalOf(err) ?? err
  }
}

function refusalOf(err: unknown): AccessRefused | undefined {
  if (!(err instanceof Fault)) return undefined
  switch (err.code) {
    case 'NOT_FOUND':
    case 'COULD_NOT_VALIDATE':
      return new AccessRefused(edgeErrorCode.invalidService, 'invalid service')
    case 'INVALID_POSTURE':
      return new AccessRefused(edgeErrorCode.invalidService, 'posture checks of the service do not pass')
    case 'NO_EDGE_ROUTERS_AVAILABLE':
      return new AccessRefused(edgeErrorCode.invalidEdgeRouter, 'invalid edge router for session')
    default:
      return undefined
  }
}
