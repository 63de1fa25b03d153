import { Fault, invalid } from '@overlay/rpc'
import { raw } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { peerLeaf } from '../http/connection.js'
import { acceptBody, type RequestContext } from '../http/exchange.js'
import {
  MAX_CONFIG_TYPES,
  MAX_CONFIG_TYPES_CHARACTERS,
  MAX_PARAMETER_CHARACTERS,
  MAX_SCOPES,
} from '../limits.js'
import type { Handlers } from './operations.js'
import {
  isClient,
  mayRedirect,
  type Provider,
  redirect,
  redirectSettings,
  withParameters,
} from './provider.js'
import { browserOf, FORM_TYPE, loginIdOf, parameterOf, parametersOf, queryParametersOf } from './requests.js'

/** The start of a login, and its end: the way back to the client. */
export function authorize(provider: Provider): Handlers {
  const start = (c: RequestContext, parameters: URLSearchParams) => authorizeBy(provider, c, parameters)
  return {
    'GET /oidc/authorize': (c) => start(c, queryParametersOf(c)),
    'POST /oidc/authorize': acceptBody(raw('authorize', [FORM_TYPE]), (c, _, bytes) =>
      start(c, parametersOf(c, bytes)),
    ),
    'GET /oidc/authorize/callback': async (c) => {
      const id = parameterOf(queryParametersOf(c), 'id')
      // wire: 404 without an id, 400 for an unknown one
      if (id === undefined) throw new Fault('NOT_FOUND', 'the id of the login is missing')
      const { login, code } = await finish(provider, c, loginIdOf(id))
      const { redirectUri, state } = login
      if (code === '') {
        const refusal = { error: 'interaction_required', error_description: 'the login is not complete' }
        return redirect(c, withParameters(redirectUri, { ...refusal, state }))
      }
      return redirect(c, withParameters(redirectUri, { code, state }))
    },
  }
}

async function finish({ oidc }: Provider, c: RequestContext, id: string) {
  const unknown = 'the login does not exist, has expired or has been finished'
  if (id === '') throw invalid('id', unknown)
  try {
    const { login, code } = await oidc.finishLogin({ id, browser: browserOf(c) }, callContext(c))
    if (!login) throw new Fault('UNHANDLED', undefined, new Error('the answer contains no login'))
    return { login, code }
  } catch (err) {
    if (err instanceof Fault && err.code === 'NOT_FOUND') throw invalid('id', unknown) // wire: 400, not 404
    throw err
  }
}

async function authorizeBy(
  provider: Provider,
  c: RequestContext,
  parameters: URLSearchParams,
): Promise<Response> {
  const value = (name: string): string => parameters.get(name) ?? ''
  const [clientId, redirectUri, state] = [value('client_id'), value('redirect_uri'), value('state')]
  // wire: without a redirect. Other addresses must never receive anything.
  if (!isClient(clientId)) throw invalid('client_id', 'the client is unknown')
  if (!mayRedirect(provider.redirects, redirectUri)) {
    provider.noteUnregistered(c, { uri: redirectUri, clientId, setting: redirectSettings.redirect_uri })
    throw invalid('redirect_uri', 'the redirect URI is missing or not registered')
  }

  const refusal = refusalOf(parameters)
  if (refusal) {
    const [error, description = ''] = refusal
    const members = { error, error_description: description, state: state.slice(0, MAX_PARAMETER_CHARACTERS) }
    // wire: an error returns in the fragment where response_type contains id_token, else in the query
    const mark = value('response_type').split(' ').includes('id_token') ? '#' : '?'
    return redirect(c, withParameters(redirectUri, members, mark))
  }
  const { id } = await provider.oidc.startLogin(
    {
      clientId,
      redirectUri,
      scopes: scopesOf(value('scope')),
      state,
      nonce: value('nonce'),
      codeChallenge: value('code_challenge'),
      configTypes: parameters.getAll('configTypes'),
    },
    callContext(c),
  )
  const step = stepOf(value('method')) ?? (peerLeaf(c.env.incoming) ? 'cert' : 'username')
  return redirect(c, `/oidc/login/${step}?authRequestID=${id}`) // wire: Location is a path, without scheme and host
}

const steps = { password: 'username', cert: 'cert', 'ext-jwt': 'ext-jwt' } as const

/** wire: an unknown `method` is ignored, as if it were absent. */
const stepOf = (method: string): string | undefined =>
  Object.hasOwn(steps, method) ? steps[method as keyof typeof steps] : undefined

const scopesOf = (text: string): string[] => [...new Set(text.split(' ').filter((scope) => scope !== ''))]

/** Why a request of a known client cannot begin a login: error, and description. */
function refusalOf(parameters: URLSearchParams): readonly [string, string?] | undefined {
  const value = (name: string): string => parameters.get(name) ?? ''
  for (const name of ['state', 'nonce', 'scope'])
    if (value(name).length > MAX_PARAMETER_CHARACTERS) return ['invalid_request', `${name} is too long`]
  const configTypes = parameters.getAll('configTypes')
  if (configTypes.length > MAX_CONFIG_TYPES) return ['invalid_request', 'configTypes has too many values']
  if (configTypes.join('').length > MAX_CONFIG_TYPES_CHARACTERS)
    return ['invalid_request', 'configTypes is too long']
  if (value('request') !== '') return ['request_not_supported', 'request objects are not supported']
  if (value('request_uri') !== '') return ['request_uri_not_supported', 'request objects are not supported']

  const prompts = value('prompt').split(' ')
  if (prompts.includes('none'))
    return prompts.length > 1 ? ['invalid_request', 'the prompt none stands alone'] : ['login_required'] // no login is remembered
  const responseType = value('response_type')
  if (responseType === '') return ['invalid_request', 'response_type is missing']
  // wire: unauthorized_client, not unsupported_response_type
  if (responseType !== 'code') return ['unauthorized_client', 'the response type must be code']
  const responseMode = value('response_mode')
  if (responseMode !== '' && responseMode !== 'query')
    return ['invalid_request', 'the response mode must be query']
  const scopes = scopesOf(value('scope'))
  if (scopes.length === 0) return ['invalid_request', 'scope is missing']
  if (!scopes.includes('openid')) return ['invalid_scope', 'the scope openid is missing']
  if (scopes.length > MAX_SCOPES) return ['invalid_scope', 'there are too many scopes']
  // differs: without a challenge, a reader of the redirect could redeem the code
  if (value('code_challenge_method') !== 'S256' || !/^[\w-]{43}$/.test(value('code_challenge')))
    return ['invalid_request', 'code_challenge is missing, or its method is not S256']
  return undefined
}
