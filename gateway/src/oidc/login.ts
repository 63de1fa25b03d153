import { clientAddressOf } from '@overlay/process/tls'
import { Fault, faults, type LoginState } from '@overlay/rpc'
import { jsonBytes, raw } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { peerCertificates, remoteAddressOf } from '../http/connection.js'
import { acceptBody, type Handler, type RequestContext } from '../http/exchange.js'
import { sendDialogue } from '../http/html.js'
import { credentialsOf } from '../http/session.js'
import { answerStep, formTargets, signersOf } from './login-answer.js'
import { type LoginBody, loginBodyOf, loginTypes } from './login-body.js'
import type { Handlers } from './operations.js'
import { type LoginMethod, loginPage, refusedLogin } from './pages.js'
import type { Provider } from './provider.js'
import {
  answerTypeOf,
  browserOf,
  isBrowser,
  keepBrowser,
  loginIdOf,
  mayBeForeign,
  queryParametersOf,
} from './requests.js'
import { plainText } from './responses.js'

/** wire: the SDK reads the id of the login from this header of the response to GET. */
const ID_HEADER = 'auth-request-id'

/** The pages of the first step, and the credentials that they present. */
export function loginSteps(provider: Provider): Handlers {
  const show =
    (method: LoginMethod): Handler =>
    async (c) => {
      const id = loginIdOf(queryParametersOf(c).get('authRequestID'))
      c.env.outgoing.setHeader(ID_HEADER, id)
      // wire: 200 and text to GET, except for the page of user name and password
      if (method !== 'password' && !isBrowser(c.env.incoming))
        return plainText(c, 200, 'POST to this address')
      return showLogin(provider, c, id, method)
    }
  const present = (method: LoginMethod) =>
    acceptBody(raw('login', loginTypes), async (c, _, bytes) => {
      const body = loginBodyOf(c, bytes)
      const takesCookie = answerTypeOf(c.env.incoming) === 'html' || (method === 'cert' && mayBeForeign(c))
      if (takesCookie && browserOf(c) === '') return showLogin(provider, c, body.id, method, noCookie, 400)
      try {
        const login = await presentCredential(provider, c, method, body)
        return answerStep(provider, c, login)
      } catch (err) {
        return refuseLogin(provider, c, method, body.id, err)
      }
    })
  return {
    'GET /oidc/login/username': show('password'),
    'GET /oidc/login/password': show('password'),
    'GET /oidc/login/cert': show('cert'),
    'GET /oidc/login/ext-jwt': show('ext-jwt'),
    'POST /oidc/login/username': present('password'),
    'POST /oidc/login/password': present('password'),
    'POST /oidc/login/cert': present('cert'),
    'POST /oidc/login/ext-jwt': present('ext-jwt'),
  }
}

/** Without the cookie, an attacker who had sent the link could continue the login. */
const noCookie = 'Signing in requires a cookie. Allow cookies for this site and try again.'

async function showLogin(
  provider: Provider,
  c: RequestContext,
  id: string,
  method: LoginMethod,
  error?: string,
  status = 200,
): Promise<Response> {
  if (isBrowser(c.env.incoming)) keepBrowser(c)
  const signers = isBrowser(c.env.incoming) ? await signersOf(provider, c) : []
  const page = { ...loginPage(id, method, signers, error), status }
  return sendDialogue(c, page, formTargets(provider.redirects))
}

function presentCredential(
  { oidc }: Provider,
  c: RequestContext,
  method: LoginMethod,
  { id, username, password, token, configTypes, envInfo, sdkInfo }: LoginBody,
): Promise<LoginState> {
  if (id === '') throw new Fault('INVALID_AUTH')
  const { incoming } = c.env
  const credential = {
    method,
    username,
    password,
    peerCertificates: method === 'cert' ? peerCertificates(incoming) : [],
    isLeafAlone: false,
    bearerTokens: [...credentialsOf(c.env.incoming).bearers, ...(token === '' ? [] : [token.trim()])],
    configTypes: [...configTypes],
    envInfo: infoBytes(envInfo),
    sdkInfo: infoBytes(sdkInfo),
    ipAddress: clientAddressOf(incoming.socket),
  }
  const [remoteAddress, browser] = [remoteAddressOf(incoming), browserOf(c)]
  return oidc.presentCredential({ id, credential, remoteAddress, browser }, callContext(c))
}

const infoBytes = (info: object | undefined): Buffer => (info ? jsonBytes(info) : Buffer.alloc(0))

/** wire: a wrong password is answered with the page and 200, whatever the client accepts; others with text and 401. */
function refuseLogin(
  provider: Provider,
  c: RequestContext,
  method: LoginMethod,
  id: string,
  err: unknown,
): Response | Promise<Response> {
  if (!(err instanceof Fault)) throw err
  const status = faults[err.code][0]
  if (status >= 500 || status === 429) throw err
  c.env.faultCode = 'INVALID_AUTH'
  if (method === 'password') return showLogin(provider, c, id, method, refusedLogin)
  if (answerTypeOf(c.env.incoming) === 'html') return showLogin(provider, c, id, method, refusedLogin, 401)
  return plainText(c, 401, faults.INVALID_AUTH[2])
}
