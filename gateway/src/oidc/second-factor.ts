import { Fault, faults, type LoginState } from '@overlay/rpc'
import { toDataURL } from 'qrcode'
import { raw } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { acceptBody, type RequestContext } from '../http/exchange.js'
import { sendDialogue } from '../http/html.js'
import { answerStep, formTargets, sendQueries } from './login-answer.js'
import { type LoginBody, loginBodyOf, loginTypes } from './login-body.js'
import type { Handlers } from './operations.js'
import { codePage, newFactorPage, refusedCode } from './pages.js'
import type { Provider } from './provider.js'
import { answerTypeOf, browserOf, loginIdOf, queryParametersOf } from './requests.js'
import { plainText, sendJson } from './responses.js'

const body = raw('login', loginTypes)

/** The steps after the first one: codes, and a second factor that does not exist yet. */
export function secondFactorSteps(provider: Provider): Handlers {
  const { oidc } = provider
  const presentCode = (action: 'totp' | 'totp/enroll/verify') =>
    acceptBody(body, async (c, _, bytes) => {
      const { id, code } = loginBodyOf(c, bytes)
      const present = action === 'totp' ? oidc.presentCode : oidc.verifySecondFactor
      try {
        if (id === '' || code === '') throw new Fault('MFA_INVALID_TOKEN')
        const login = await present({ id, code: code.trim(), browser: browserOf(c) }, callContext(c))
        return answerStep(provider, c, login)
      } catch (err) {
        return refuseCode(provider, c, id, action, err)
      }
    })
  return {
    'POST /oidc/login/totp': presentCode('totp'),
    'POST /oidc/login/totp/enroll': acceptBody(body, (c, _, bytes) =>
      enroll(provider, c, loginBodyOf(c, bytes)),
    ),
    'POST /oidc/login/totp/enroll/verify': presentCode('totp/enroll/verify'),
    'GET /oidc/login/auth-queries': async (c) => {
      const query = queryParametersOf(c)
      const id = loginIdOf(query.get('id') ?? query.get('authRequestID'))
      const login = await findLogin(provider, c, id)
      return login ? sendQueries(c, login) : plainText(c, 401, faults.INVALID_AUTH[2])
    },
  }
}

const findLogin = ({ oidc }: Provider, c: RequestContext, id: string): Promise<LoginState | undefined> =>
  ifFound(id, () => oidc.getLogin({ id, browser: browserOf(c) }, callContext(c)))

const newFactor = ({ oidc }: Provider, c: RequestContext, id: string) =>
  ifFound(id, () => oidc.enrollSecondFactor({ id, browser: browserOf(c) }, callContext(c)))

/** Undefined: the login does not exist, or not for this client. */
async function ifFound<T>(id: string, call: () => Promise<T>): Promise<T | undefined> {
  if (id === '') return undefined
  try {
    return await call()
  } catch (err) {
    if (err instanceof Fault && err.code === 'NOT_FOUND') return undefined
    throw err
  }
}

async function enroll(provider: Provider, c: RequestContext, { id }: LoginBody): Promise<Response> {
  const factor = await newFactor(provider, c, id)
  if (!factor) throw new Fault('INVALID_AUTH')
  const { provisioningUrl, recoveryCodes } = factor
  if (answerTypeOf(c.env.incoming) === 'html') {
    const image = await toDataURL(provisioningUrl, { width: 256, errorCorrectionLevel: 'M' })
    const page = newFactorPage(id, image, provisioningUrl, recoveryCodes)
    return sendDialogue(c, page, formTargets(provider.redirects))
  }
  // wire: the members are the whole body, without `data` and `meta`
  return sendJson(c, 201, {
    _links: {},
    createdAt: new Date(factor.createdAtMs).toISOString(),
    id: factor.id,
    isVerified: false,
    provisioningUrl,
    recoveryCodes,
    tags: {},
    updatedAt: new Date(factor.updatedAtMs).toISOString(),
  })
}

/** wire: the code of the error has spaces, and nothing around it; the page has 200. */
function refuseCode(
  provider: Provider,
  c: RequestContext,
  id: string,
  action: 'totp' | 'totp/enroll/verify',
  err: unknown,
): Response {
  if (!(err instanceof Fault)) throw err
  const status = faults[err.code][0]
  if (status >= 500 || status === 429) throw err
  c.env.faultCode = 'MFA_INVALID_TOKEN'
  if (answerTypeOf(c.env.incoming) === 'html')
    return sendDialogue(c, codePage(id, action, refusedCode), formTargets(provider.redirects))
  return sendJson(c, 400, { code: 'INVALID TOTP CODE', message: faults.MFA_INVALID_TOKEN[2] })
}
