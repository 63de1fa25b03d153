import { createHash, randomBytes } from 'node:crypto'
import type { Context, LoginState, TokenRequest } from '@overlay/rpc'
import { expect } from 'vitest'
import { as, bytes, login, parsed, type Replica, system } from './identity.js'

export const REDIRECT = 'http://localhost:8080/auth/callback'
export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const typeOf = (type: string): string => `urn:ietf:params:oauth:token-type:${type}`

/** Of a client at another network. */
export const from = (sourceAddress: string): Context => ({ ...as({}), sourceAddress })

export const client: Context = from('192.0.2.1')

/** An auth policy that demands more than the default. */
export async function policy(replica: Replica, name: string, secondary: object): Promise<string> {
  const json = bytes({
    name,
    primary: {
      cert: { allowed: true, allowExpiredCerts: false },
      extJwt: { allowed: true, allowedSigners: [] },
      updb: {
        allowed: true,
        minPasswordLength: 5,
        requireSpecialChar: false,
        requireNumberChar: false,
        requireMixedCase: false,
        maxAttempts: 0,
        lockoutDurationMinutes: 0,
      },
    },
    secondary: { requireTotp: false, ...secondary },
  })
  return (await replica.entities.create({ kind: 'auth-policies', json }, system())).id
}

/** An identity with a password. */
export async function person(replica: Replica, name: string, members: object = {}): Promise<string> {
  const json = bytes({ name, type: 'Default', isAdmin: false, ...members })
  const { id: identityId } = await replica.entities.create({ kind: 'identities', json }, system())
  const proof = { method: 'updb', identityId, username: name, password: 'right-one' }
  await replica.entities.create({ kind: 'authenticators', json: bytes(proof) }, system())
  return identityId
}

export interface Flow {
  readonly id: string
  readonly verifier: string
}

/** Starts a login of the client `native`. */
export async function start(
  replica: Replica,
  members: Partial<Parameters<Replica['oidc']['startLogin']>[0]> = {},
  context = client,
): Promise<Flow> {
  const verifier = randomBytes(36).toString('base64url')
  const { id } = await replica.oidc.startLogin(
    {
      clientId: 'native',
      redirectUri: REDIRECT,
      scopes: ['openid', 'offline_access'],
      state: 'a state',
      nonce: 'a nonce',
      codeChallenge: createHash('sha256').update(verifier).digest('base64url'),
      configTypes: [],
      ...members,
    },
    context,
  )
  return { id, verifier }
}

export const present = (
  replica: Replica,
  { id }: { readonly id: string },
  credential: Parameters<typeof login>[0],
  { browser = '', context = client } = {},
): Promise<LoginState> =>
  replica.oidc.presentCredential(
    {
      id,
      credential: login({ password: 'right-one', ...credential }),
      remoteAddress: '192.0.2.1:50000',
      browser,
    },
    context,
  )

export const tokenRequest = (members: Partial<TokenRequest>): TokenRequest => ({
  grantType: 'authorization_code',
  clientId: 'native',
  code: '',
  codeVerifier: '',
  redirectUri: '',
  refreshToken: '',
  scopes: [],
  subjectToken: '',
  subjectTokenType: '',
  requestedTokenType: '',
  remoteAddress: '192.0.2.1:50000',
  ...members,
})

export interface Answer {
  readonly access_token: string
  readonly refresh_token: string
  readonly id_token: string
  readonly [member: string]: unknown
}

/** The answer of the token endpoint: its JSON, or the error. */
export async function tokens(replica: Replica, members: Partial<TokenRequest>): Promise<Answer> {
  const { json, error } = await replica.oidc.getTokens(tokenRequest(members), client)
  return error ? ({ error: error.error } as unknown as Answer) : parsed<Answer>(json)
}

export const codeRequest = ({ verifier }: Flow, code: string): Partial<TokenRequest> => ({
  code,
  codeVerifier: verifier,
  redirectUri: REDIRECT,
})

/** A login by password up to its code. */
export async function code(replica: Replica, username: string, members: Parameters<typeof start>[1] = {}) {
  const flow = await start(replica, members)
  expect(await present(replica, flow, { username })).toMatchObject({ isComplete: true })
  const { code } = await replica.oidc.finishLogin({ id: flow.id, browser: '' }, client)
  return { flow, request: codeRequest(flow, code) }
}

/** A whole login by password. */
export async function logIn(
  replica: Replica,
  username: string,
  members: Parameters<typeof start>[1] = {},
): Promise<Answer> {
  const { request } = await code(replica, username, members)
  return tokens(replica, request)
}

export const refreshed = (replica: Replica, refreshToken: string, members: Partial<TokenRequest> = {}) =>
  tokens(replica, { grantType: 'refresh_token', refreshToken, ...members })

export const exchanged = (
  replica: Replica,
  subjectToken: string,
  requested = 'refresh_token',
  members: Partial<TokenRequest> = {},
) =>
  tokens(replica, {
    grantType: EXCHANGE,
    subjectToken,
    subjectTokenType: typeOf('refresh_token'),
    requestedTokenType: typeOf(requested),
    ...members,
  })

export const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

/** Whether the access token opens an API session. */
export async function works(replica: Replica, accessToken: string): Promise<boolean> {
  const { z_asid, sub } = claimsOf(accessToken)
  const claims = { apiSessionId: String(z_asid), identityId: String(sub) }
  return replica.identity.getBearerSession(claims, client).then(
    () => true,
    () => false,
  )
}
