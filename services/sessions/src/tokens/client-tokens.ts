import { Fault } from '@overlay/rpc'
import type { SessionFacts } from '../domain/session-token.js'
import type { ClientRouterList } from '../routers/client-routers.js'
import type { SessionTokens } from './session-tokens.js'

/** The token of a session that a client gets. `routerIds`: those that serve the session. */
export type ClientToken = (
  session: SessionFacts & { readonly token: string },
  routerIds: readonly string[],
) => string | Promise<string>

/**
 * The stored UUID where all routers are known to be of 1.1 to 1.6: they close what an ended session carries only if its
 * token is one, or are not enrolled. Otherwise a signed token, also where an enrolled router has not been seen yet: those of
 * today take no other, and clients that host keep the token of their first create.
 */
export const openClientToken =
  (
    tokens: Pick<SessionTokens, 'sign'>,
    clientRouters: Pick<ClientRouterList, 'lastFeaturesOf'>,
  ): ClientToken =>
  (session, routerIds) => {
    const routers = clientRouters.lastFeaturesOf(routerIds)
    const isNeeded = routers.some((one) => one?.needsSignedSessions)
    if (!isNeeded && !routers.includes(undefined)) return session.token
    const withoutKey = (): string => {
      if (isNeeded) throw new Fault('UNAVAILABLE', 'there is no key yet that signs tokens of sessions')
      return session.token
    }
    const signed = tokens.sign(session)
    return typeof signed === 'string' ? signed : signed.then((token) => token ?? withoutKey())
  }
