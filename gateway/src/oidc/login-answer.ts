import { externalJwtSigner } from '@overlay/model'
import { type LoginState, Perspective } from '@overlay/rpc'
import { callContext } from '../http/calls.js'
import type { RequestContext } from '../http/exchange.js'
import { sendDialogue } from '../http/html.js'
import { MAX_SIGNERS } from '../limits.js'
import { codePage, type ExternalProvider, enrollmentPage, tokenPage } from './pages.js'
import { type Provider, redirect } from './provider.js'
import type { RedirectUris } from './redirect-uris.js'
import { answerTypeOf } from './requests.js'
import { sendJson } from './responses.js'

/** wire: a response with this header makes the SDK ask its user for a code. */
const TOTP_HEADER = 'totp-required'

/** Leads on to the callback if nothing is missing, otherwise says what is. */
export function answerStep(provider: Provider, c: RequestContext, login: LoginState): Response {
  const { id } = login
  // wire: Location of the callback is a URL with scheme and host
  if (login.isComplete) return redirect(c, `${provider.issuer}/authorize/callback?id=${id}`)
  if (answerTypeOf(c.env.incoming) === 'json') return sendQueries(c, login)
  noteCode(c, login)
  const page = login.needsEnrollment
    ? enrollmentPage(id)
    : login.needsCode
      ? codePage(id, 'totp')
      : tokenPage(id, providersOf(login))
  return sendDialogue(c, page, formTargets(provider.redirects))
}

/** What the login still needs, for programs. */
export function sendQueries(c: RequestContext, login: LoginState): Response {
  noteCode(c, login)
  return sendJson(c, 200, { authQueries: queriesOf(login) })
}

function noteCode(c: RequestContext, { needsCode, needsEnrollment }: LoginState): void {
  if (needsCode || needsEnrollment) c.env.outgoing.setHeader(TOTP_HEADER, 'true')
}

interface AuthQuery {
  readonly typeId: string
  readonly httpUrl?: string
}

const parseQueries = ({ authQueries }: LoginState): readonly AuthQuery[] =>
  authQueries.length === 0 ? [] : (JSON.parse(Buffer.from(authQueries).toString()) as AuthQuery[])

/** wire: newer SDKs look for the type TOTP, and whether the second factor exists. */
const queriesOf = (login: LoginState): readonly object[] =>
  parseQueries(login).map((query) =>
    query.typeId === 'MFA'
      ? {
          ...query,
          typeId: 'TOTP',
          httpUrl: './oidc/login/totp',
          isTotpEnrolled: !login.needsEnrollment,
        }
      : query,
  )

const providersOf = (login: LoginState): ExternalProvider[] =>
  parseQueries(login).flatMap(({ typeId, httpUrl }) =>
    typeId === 'EXT-JWT' && httpUrl ? [{ name: httpUrl, url: httpUrl }] : [],
  )

/**
 * Where forms may lead: to us, and on to a client. Browsers apply the rule to redirects as well.
 */
export function formTargets(redirects: RedirectUris): string {
  const targets = redirects.map(({ pattern }) => {
    const [, scheme = '', host = ''] = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?]*))?/i.exec(pattern) ?? []
    const isWeb = /^https?$/i.test(scheme)
    // the sources of a policy cannot name IPv6 addresses
    return isWeb && /^[\w.*:-]+$/.test(host) ? `${scheme}://${host}` : `${scheme}:`
  })
  return ["'self'", ...new Set(targets)].join(' ')
}

const asClient = Perspective.fromPartial({ asClient: true })

/** The enabled signers of external tokens, as every client sees them. */
export async function signersOf({ signers }: Provider, c: RequestContext): Promise<ExternalProvider[]> {
  const query = {
    filter: '',
    sort: 'name',
    limit: String(MAX_SIGNERS),
    offset: '',
    roleFilter: [],
    roleSemantic: '',
    after: Buffer.alloc(0),
  }
  const request = { kind: externalJwtSigner.kind, query, within: undefined, perspective: asClient }
  const { rows } = await signers.list(request, callContext(c))
  return (JSON.parse(rows.toString()) as Row[]).map(({ name, externalAuthUrl }) => ({
    name,
    url: externalAuthUrl ?? '',
  }))
}

interface Row {
  readonly name: string
  readonly externalAuthUrl?: string | null
}
