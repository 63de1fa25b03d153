import { createHash, randomBytes } from 'node:crypto'
import { Agent, request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { type Answers, counting, type Limits } from './load.js'

const clientId = 'openziti'
const redirectUri = 'http://localhost:8080/auth/callback'

/** How a login by OpenID Connect proves who logs in. */
export interface Proof {
  readonly method: 'password' | 'ext-jwt'
  readonly form?: Readonly<Record<string, string>>
  readonly token?: string
}

interface Response {
  readonly status: number
  readonly location: URL
  readonly content: string
}

type Send = (
  method: 'GET' | 'POST',
  path: string,
  form?: URLSearchParams,
  token?: string,
) => Promise<Response>

/** The code flow as SDKs perform it, in four requests: authorize, login, callback, token. */
async function logIn(send: Send, { method, form, token }: Proof): Promise<string> {
  const verifier = randomBytes(36).toString('base64url')
  const query = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    scope: 'openid offline_access',
    state: randomBytes(9).toString('base64url'),
    nonce: randomBytes(9).toString('base64url'),
    redirect_uri: redirectUri,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    method,
  })
  const authorized = await send('GET', `/oidc/authorize?${query}`)
  const id = authorized.location.searchParams.get('authRequestID') ?? ''
  const login = await send('POST', `/oidc/login/${method}`, new URLSearchParams({ ...form, id }), token)
  const back = await send('GET', `${login.location.pathname}${login.location.search}`)
  const grant = {
    grant_type: 'authorization_code',
    client_id: clientId,
    code: back.location.searchParams.get('code') ?? '',
    code_verifier: verifier,
    redirect_uri: redirectUri,
  }
  const { status, content } = await send('POST', '/oidc/oauth/token', new URLSearchParams(grant))
  if (status !== 200) throw new FlowError(status)
  return (JSON.parse(content) as { access_token: string }).access_token
}

class FlowError extends Error {
  constructor(readonly status: number) {
    super(`the token endpoint answers ${status}`)
    this.name = 'Flow'
  }
}

const sender = (url: string, agent: Agent): Send => {
  const send: Send = (method, path, form, token) =>
    new Promise((resolve, reject) => {
      const body = form?.toString()
      const headers = {
        accept: 'application/json',
        ...(token && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && {
          'content-type': 'application/x-www-form-urlencoded',
          'content-length': Buffer.byteLength(body),
        }),
      }
      const outgoing = httpsRequest(`${url}${path}`, { method, agent, headers }, (response) => {
        const { statusCode: status = 0, headers } = response
        const location = new URL(headers.location ?? '/', url)
        text(response).then((content) => resolve({ status, location, content }), reject)
      })
      outgoing.on('error', (err: NodeJS.ErrnoException) => {
        // the controller may close an idle connection at the moment of its next use
        if (outgoing.reusedSocket && err.code === 'ECONNRESET') resolve(send(method, path, form, token))
        else reject(err)
      })
      outgoing.end(body)
    })
  return send
}

/** Access tokens of these identities. */
export async function accessTokens(url: string, proofs: readonly Proof[]): Promise<string[]> {
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })
  const tokens: string[] = []
  for (const proof of proofs) tokens.push(await logIn(sender(url, agent), proof))
  agent.destroy()
  return tokens
}

/** Logs in repeatedly, with these proofs in turn. A whole login counts as one request. */
export const openIdLogins =
  (proofs: readonly Proof[]) =>
  async ({ url, concurrency, seconds }: Limits): Promise<Answers> => {
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false, maxSockets: concurrency })
    const send = sender(url, agent)
    const { latency, failures, answered } = counting()
    const end = performance.now() + seconds * 1000
    let turn = 0
    const worker = async (): Promise<void> => {
      while (performance.now() < end) {
        const [started, proof] = [performance.now(), proofs[turn++ % proofs.length]]
        const status = await (proof ? logIn(send, proof) : Promise.reject(new FlowError(0))).then(
          () => 200,
          (err: unknown) => (err instanceof FlowError ? err.status : 0),
        )
        answered(status, performance.now() - started)
      }
    }
    await Promise.all(Array.from({ length: concurrency }, worker))
    agent.destroy()
    return { latency, failures }
  }
