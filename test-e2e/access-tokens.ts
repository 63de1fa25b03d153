import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import type { Certificate } from './client.js'

export interface Tokens {
  readonly access: string
  readonly refresh: string
  readonly id: string
}

export interface RedeemedTokens extends Tokens {
  /** Sends a form to the token endpoint of the next gateway. The answer is JSON. */
  post(form: Readonly<Record<string, string>>): Promise<Readonly<Record<string, unknown>>>
  /** The form by which the code of the login was redeemed. */
  readonly redemption: Readonly<Record<string, string>>
}

const REDIRECT = 'http://localhost:8080/auth/callback'

/** Logs in by OpenID Connect, each step at the next gateway. */
export async function accessTokens(
  gateways: readonly string[],
  caPem: string,
  credentials: { readonly username: string; readonly password: string } | Certificate,
): Promise<RedeemedTokens> {
  const certificate = 'cert' in credentials ? credentials : undefined
  const send = sender(gateways, caPem, certificate)
  const locationOf = ({ headers }: { readonly headers: IncomingHttpHeaders }): URL =>
    new URL(headers.location ?? '/none', 'https://localhost')

  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    client_id: 'native',
    response_type: 'code',
    scope: 'openid offline_access',
    state: 'state',
    redirect_uri: REDIRECT,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const started = locationOf(await send('GET', `/oidc/authorize?${query}`))
  const id = started.searchParams.get('authRequestID') ?? ''
  const back = locationOf(
    await ('cert' in credentials
      ? send('POST', '/oidc/login/cert', { id })
      : send('POST', '/oidc/login/password', { id, ...credentials })),
  )
  const code = locationOf(await send('GET', back.pathname + back.search)).searchParams.get('code') ?? ''
  const redemption = {
    grant_type: 'authorization_code',
    client_id: 'native',
    code,
    code_verifier: verifier,
    redirect_uri: REDIRECT,
  }
  const { content } = await send('POST', '/oidc/oauth/token', redemption)
  return {
    ...tokensIn(content),
    redemption,
    post: async (form) => JSON.parse((await send('POST', '/oidc/oauth/token', form)).content),
  }
}

/** Other tokens of the same session. */
export async function refreshed(
  gateways: readonly string[],
  caPem: string,
  { refresh }: Tokens,
): Promise<Tokens> {
  const send = sender(gateways, caPem)
  const form = { grant_type: 'refresh_token', client_id: 'native', refresh_token: refresh }
  return tokensIn((await send('POST', '/oidc/oauth/token', form)).content)
}

/** A browser: it keeps cookies, and its requests go to the gateways in turn. */
function sender(gateways: readonly string[], caPem: string, certificate?: Certificate) {
  let turn = 0
  let cookie = ''
  return (method: string, target: string, form?: Readonly<Record<string, string>>) =>
    new Promise<{ readonly headers: IncomingHttpHeaders; readonly content: string }>((resolve, reject) => {
      const url = `https://${gateways[turn++ % gateways.length]}${target}`
      const headers = {
        accept: 'application/json',
        ...(cookie && { cookie }),
        ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
      }
      const outgoing = httpsRequest(
        url,
        { method, headers, ca: caPem, agent: false, ...certificate },
        (response) => {
          const set = response.headers['set-cookie']?.map((one) => one.split(';')[0]) ?? []
          if (set.length > 0) cookie = set.join('; ')
          text(response).then((content) => resolve({ headers: response.headers, content }), reject)
        },
      )
      outgoing.on('error', reject)
      outgoing.end(form && new URLSearchParams(form).toString())
    })
}

function tokensIn(content: string): Tokens {
  const answer = JSON.parse(content) as Record<string, string | undefined>
  const { access_token: access, refresh_token: refresh, id_token } = answer
  if (!access || !refresh || !id_token) throw new Error(`no tokens: ${content}`)
  return { access, refresh, id: id_token }
}
