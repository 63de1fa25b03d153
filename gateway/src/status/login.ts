import { type ApiSession, Fault, faults } from '@overlay/rpc'
import { logIn } from '../api/authenticate.js'
import type { CachedSession } from '../cache/session.js'
import type { Sessions } from '../cache/sessions.js'
import type { Services } from '../clients/services.js'
import { raw } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { acceptBody, type Endpoint, type RequestContext } from '../http/exchange.js'
import { type Dialogue, sendDialogue } from '../http/html.js'
import { forbidStoring } from '../http/send.js'
import { write } from '../http/write.js'
import { refusedCode } from '../oidc/pages.js'
import { FORM_TYPE, formOf, mayBeForeign } from '../oidc/requests.js'
import {
  browserSession,
  codePage,
  dropToken,
  endedSession,
  keepToken,
  loginPage,
  refusedLogin,
  refusedPage,
} from './login-pages.js'

type Step = (c: RequestContext, form: URLSearchParams) => Promise<Response>

/** Opens and ends the API session of a browser, by the login steps of the APIs. */
export function loginSteps(services: Services, sessions: Sessions): Readonly<Record<string, Endpoint>> {
  const { identity } = services

  async function end(c: RequestContext, { id, caller }: CachedSession): Promise<void> {
    const rows = services.entitiesOf('identity')
    await rows.delete({ kind: 'api-sessions', id }, { ...callContext(c), caller })
    sessions.drop(`api-sessions ${id}`)
  }

  /** Why a new session cannot see the page, and no code changes that. */
  async function refusalOf(c: RequestContext, opened: ApiSession): Promise<string | undefined> {
    const { isAdmin, isPartial, identityName, json } = opened
    if (!isAdmin) return `${identityName} is not an administrator.`
    if (!isPartial) return undefined
    const { authQueries } = JSON.parse(json.toString()) as {
      readonly authQueries: readonly { typeId: string }[]
    }
    if (authQueries.some(({ typeId }) => typeId !== 'MFA'))
      return 'Your auth policy requires a token of another provider, which this page does not take.'
    const caller = sessions.add(opened).caller
    const factor = await identity.getMfa({}, { ...callContext(c), caller }).catch(ignoreMissing)
    return factor?.isVerified
      ? undefined
      : 'Your auth policy requires a second factor, and you have none. Set it up with another client first.'
  }

  const present: Step = async (c, form) => {
    const method = form.get('method') === 'cert' ? 'cert' : 'password'
    const body = { username: form.get('username') ?? '', password: form.get('password') ?? '' }
    let opened: ApiSession
    try {
      opened = await logIn(identity, c, method, body)
    } catch (err) {
      return refuse(c, err, 'INVALID_AUTH', loginPage(refusedLogin, 401))
    }
    const session = sessions.add(opened)
    c.env.session = session
    const refusal = await refusalOf(c, opened)
    if (refusal !== undefined) {
      await end(c, session)
      return sendDialogue(c, refusedPage(refusal, 403))
    }
    keepToken(c, opened.token)
    return seePage(c)
  }

  const passCode: Step = async (c, form) => {
    const found = await browserSession(c, sessions)
    if (typeof found === 'string') return sendDialogue(c, loginPage(endedSession), "'self'")
    const { session, token } = found
    c.env.session = session
    try {
      await identity.passMfa({ code: (form.get('code') ?? '').trim() }, callContext(c))
    } catch (err) {
      return refuse(c, err, 'MFA_INVALID_TOKEN', codePage(refusedCode, 401))
    }
    sessions.drop(`api-sessions ${session.id}`)
    keepToken(c, token)
    return seePage(c)
  }

  const logOut: Step = async (c) => {
    const found = await browserSession(c, sessions)
    if (typeof found !== 'string') {
      c.env.session = found.session
      await end(c, found.session)
    }
    dropToken(c)
    return seePage(c)
  }

  return {
    'POST /status/login': ownForm(present),
    'POST /status/code': ownForm(passCode),
    'POST /status/logout': ownForm(logOut),
  }
}

/** A form of our own pages. Those of other sites are refused: browsers would present their certificate for them. */
const ownForm = (step: Step): Endpoint =>
  acceptBody(raw('form', [FORM_TYPE]), (c, _, bytes) => {
    if (mayBeForeign(c)) return sendDialogue(c, refusedPage('Another site has sent this form.', 403))
    return step(c, formOf(c, bytes))
  })

/** Another request shows the result, so that a reload repeats no login. */
function seePage(c: RequestContext): Response {
  forbidStoring(c)
  return write(c, 303, { location: '/status' }, null)
}

/** The page again if what was entered is wrong. Other failures are answered as such. */
function refuse(
  c: RequestContext,
  err: unknown,
  code: 'INVALID_AUTH' | 'MFA_INVALID_TOKEN',
  page: Dialogue,
): Response {
  if (!(err instanceof Fault)) throw err
  const [status] = faults[err.code]
  if (status >= 500 || status === 429) throw err
  c.env.faultCode = code
  return sendDialogue(c, page, "'self'")
}

function ignoreMissing(err: unknown): undefined {
  if (!(err instanceof Fault && err.code === 'NOT_FOUND')) throw err
}
