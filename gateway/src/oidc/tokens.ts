import { Fault } from '@overlay/rpc'
import { decodeJwt } from 'jose'
import type { Sessions } from '../cache/sessions.js'
import { raw } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { remoteAddressOf } from '../http/connection.js'
import { acceptBody, type Handler, type RequestContext } from '../http/exchange.js'
import { forbidStoring, JSON_HEADERS } from '../http/send.js'
import { credentialsOf } from '../http/session.js'
import { write } from '../http/write.js'
import { clientOf } from './client-authentication.js'
import type { Handlers } from './operations.js'
import type { Provider } from './provider.js'
import { FORM_TYPE, formOf, parameterOf } from './requests.js'
import { OauthRefusal, plainText, sendJson } from './responses.js'

const form = raw('form', [FORM_TYPE])

const CODE = 'authorization_code'
const REFRESH = 'refresh_token'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const GRANTS = [CODE, REFRESH, EXCHANGE]

/** The parameters without which a grant is no request. */
const required: Readonly<Record<string, readonly string[]>> = {
  [CODE]: ['code', 'code_verifier', 'redirect_uri'],
  [REFRESH]: ['refresh_token'],
  [EXCHANGE]: ['subject_token', 'subject_token_type'],
}

/** The endpoints for programs: they receive codes and tokens in a form and answer JSON. */
export const tokens = (provider: Provider): Handlers => ({
  // wire: the C SDK sends its state twice with the code, where it has no meaning
  'POST /oidc/oauth/token': acceptBody(form, (c, _, bytes) =>
    grant(provider, c, formOf(c, bytes, ['state'])),
  ),
  'POST /oidc/revoke': acceptBody(form, async (c, _, bytes) => {
    const parameters = formOf(c, bytes)
    const clientId = clientOf(c, parameters)
    const token = parameterOf(parameters, 'token')
    if (token === undefined) throw new OauthRefusal('invalid_request', 'token is missing')
    await provider.oidc.revokeToken({ clientId, token }, callContext(c))
    forbidStoring(c)
    return write(c, 200, JSON_HEADERS, '') // wire: content-type is application/json, the body is empty
  }),
  // wire: never an active token, since no caller can authenticate
  'POST /oidc/oauth/introspect': acceptBody(form, (c) => sendJson(c, 200, { active: false })),
})

async function grant({ oidc }: Provider, c: RequestContext, parameters: URLSearchParams): Promise<Response> {
  const value = (name: string): string => parameters.get(name) ?? ''
  const grantType = value('grant_type')
  if (grantType === '') throw new OauthRefusal('invalid_request', 'grant_type is missing')
  const names = required[grantType]
  if (!GRANTS.includes(grantType) || !names)
    throw new OauthRefusal('unsupported_grant_type', 'the grant type is not supported')
  const clientId = clientOf(c, parameters, {
    onlyBasic: grantType === EXCHANGE,
    asBadRequest: grantType === REFRESH, // wire: an unknown client gets 400 for a refresh, 401 for the other grants
  })
  const missing = names.find((name) => value(name) === '')
  if (missing) throw new OauthRefusal('invalid_request', `${missing} is missing`)
  const { json, error } = await oidc.getTokens(
    {
      grantType,
      clientId,
      code: value('code'),
      codeVerifier: value('code_verifier'),
      redirectUri: value('redirect_uri'),
      refreshToken: value('refresh_token'),
      scopes: value('scope').split(' ').filter(Boolean),
      subjectToken: value('subject_token'),
      subjectTokenType: value('subject_token_type'),
      requestedTokenType: value('requested_token_type'),
      remoteAddress: remoteAddressOf(c.env.incoming),
    },
    callContext(c),
  )
  if (error) throw new OauthRefusal(error.error, error.description)
  forbidStoring(c)
  c.env.outgoing.setHeader('pragma', 'no-cache')
  return write(c, 200, JSON_HEADERS, json)
}

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
      if (token !== undefined && claimsOf(token).z_t === 'r') return sendJson(c, 403, {}) // wire: 403 and {} for a refresh token
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
