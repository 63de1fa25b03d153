import { Fault } from '@overlay/rpc'
import type { CachedSession } from '../cache/session.js'
import type { Sessions } from '../cache/sessions.js'
import type { RequestContext } from '../http/exchange.js'

/** The prefix keeps pages without TLS from setting it. */
const NAME = '__Secure-status'
const cookie = new RegExp(`(?:^|;\\s*)${NAME}=([\\w-]{36})(?:;|$)`)
const ATTRIBUTES = 'Path=/status; Secure; HttpOnly; SameSite=Strict'

/** Without use of the page, its own refreshes aside. */
export const IDLE_MINUTES = 15

/** The API session that a login on the page has opened. */
export async function browserSession(
  c: RequestContext,
  sessions: Pick<Sessions, 'find'>,
): Promise<{ readonly session: CachedSession; readonly token: string } | 'none' | 'ended'> {
  const token = cookie.exec(c.env.incoming.headers.cookie ?? '')?.[1]
  if (token === undefined) return 'none'
  try {
    return { session: await sessions.find({ token, bearers: [] }), token }
  } catch (err) {
    if (!(err instanceof Fault && err.code === 'UNAUTHORIZED')) throw err
    dropToken(c)
    return 'ended'
  }
}

/** Gives a browser the token, or prolongs its time. */
export const keepToken = (c: RequestContext, token: string): void =>
  void c.env.outgoing.setHeader('set-cookie', `${NAME}=${token}; Max-Age=${IDLE_MINUTES * 60}; ${ATTRIBUTES}`)

export const dropToken = (c: RequestContext): void =>
  void c.env.outgoing.setHeader('set-cookie', `${NAME}=; Max-Age=0; ${ATTRIBUTES}`)
