import { Fault } from '@overlay/rpc'
import { decodeJwt } from 'jose'
import type { Sessions } from '../cache/sessions.js'
import { credentialsOf } from '../http/credentials.js'
import type { Handler } from '../http/exchange.js'
import type { Handlers } from './operations.js'
import { plainText, sendJson } from './send.js'

/** Whom an access token is about. */
export function userinfo(sessions: Pick<Sessions, 'find'>): Handlers {
  const handle: Handler = async (c) => {
    const [token] = credentialsOf(c.env.incoming).bearers
    try {
      if (token === undefined) throw new Fault('UNAUTHORIZED')
      const { identityId, caller } = await sessions.find({ token: '', bearers: [token] })
      // wire: without claims, as SDKs ask for none; clients that read them ask for the profile
      const { scopes } = claimsOf(token)
      const isAsked = Array.isArray(scopes) && scopes.includes('profile')
      return sendJson(c, 200, isAsked ? { sub: identityId, name: caller.identityName } : {})
    } catch (err) {
      if (!(err instanceof Fault) || err.code !== 'UNAUTHORIZED') throw err
      c.env.faultCode = err.code
      if (token !== undefined && claimsOf(token).z_t === 'r') return sendJson(c, 403, {}) // wire
      c.env.outgoing.setHeader('www-authenticate', 'Bearer error="invalid_token"')
      return plainText(c, 401, 'access token missing or invalid')
    }
  }
  return { 'GET /oidc/userinfo': handle, 'POST /oidc/userinfo': handle }
}

/** Unverified. Empty: the text is no token. */
function claimsOf(token: string): Readonly<Record<string, unknown>> {
  try {
    return decodeJwt(token)
  } catch {
    return {}
  }
}
