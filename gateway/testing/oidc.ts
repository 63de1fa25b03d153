import { createHash } from 'node:crypto'
import { Fault, type FaultCode, type LoginState } from '@overlay/rpc'
import type { Answer, RequestOptions, TestGateway } from './gateway.js'
import { startGateway } from './gateway.js'

export const ID = '0c7e42c8-4a1b-4b4e-9a34-6f3dd2c1a001'
export const REDIRECT = 'http://localhost:8080/auth/callback'
export const FORM = 'application/x-www-form-urlencoded'
export const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
/** A browser that has seen the login page. */
export const returning = { ...browser, cookie: `__Host-login=${'a'.repeat(22)}` }
export const challenge = createHash('sha256').update('verifier').digest('base64url')

/** A login of which nothing is missing. */
export const login: LoginState = {
  id: ID,
  clientId: 'native',
  redirectUri: REDIRECT,
  state: 's t',
  isIdentified: true,
  isComplete: true,
  needsCode: false,
  needsEnrollment: false,
  needsToken: false,
  authQueries: Buffer.alloc(0),
}

export const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

export const totpQuery = { typeId: 'MFA', provider: 'ziti', httpUrl: './authenticate/mfa' }
export const withCode: LoginState = {
  ...login,
  isComplete: false,
  needsCode: true,
  authQueries: json([totpQuery]),
}

/** Answers of the service behind the provider, by method. */
const answers = {
  startLogin: { ...login, isIdentified: false, isComplete: false },
  getLogin: withCode,
  presentCredential: login,
  presentCode: login,
  verifySecondFactor: login,
  enrollSecondFactor: {
    id: 'm1',
    isVerified: false,
    provisioningUrl: 'otpauth://totp/x:y?issuer=x&secret=ABCDEF',
    recoveryCodes: ['AAAAAA', 'BBBBBB'],
    createdAtMs: 0,
    updatedAtMs: 0,
  },
  finishLogin: { login, code: 'the-code' },
  getTokens: { json: json({ access_token: 'a' }), error: undefined },
  revokeToken: {},
  endSession: { clientId: 'native', error: undefined },
}
const signers = [
  { name: '<b>company</b>', externalAuthUrl: 'https://idp.example/login' },
  { name: 'old', externalAuthUrl: 'javascript:alert(1)' },
  { name: 'silent' },
]

export type Form = string | Readonly<Record<string, string>>

/** A gateway whose provider has a fake service behind it. */
export interface TestOidc extends AsyncDisposable {
  readonly gateway: TestGateway
  /** Forgets calls and replaced answers. */
  reset(): void
  answerWith(method: keyof typeof answers, answer: () => Promise<unknown>): void
  /** The first request to the method. */
  requestTo(method: keyof typeof answers): unknown
  called(method: keyof typeof answers): number
  request(path: string, options?: RequestOptions): Promise<Answer>
  post(path: string, form: Form, options?: RequestOptions): Promise<Answer>
}

export async function startOidc(): Promise<TestOidc> {
  const gateway = await startGateway()
  const { instead, calls } = gateway.fakes
  return {
    gateway,
    reset() {
      calls.splice(0)
      for (const [method, answer] of Object.entries(answers))
        instead.set(`oidc.${method}`, async () => answer)
      instead.set('identity.entities.list', async () => ({ rows: json(signers) }))
    },
    answerWith: (method, answer) => void instead.set(`oidc.${method}`, answer),
    requestTo: (method) => calls.find((call) => call.method === `oidc.${method}`)?.request,
    called: (method) => gateway.fakes.called(`oidc.${method}`),
    request: (path, options) => gateway.request(path, options),
    post: (path, form, options = {}) =>
      gateway.request(path, {
        method: 'POST',
        text: new URLSearchParams(form).toString(),
        ...options,
        headers: { 'content-type': FORM, ...options.headers },
      }),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  }
}

export const fails = (code: FaultCode) => async () => {
  throw new Fault(code)
}

const good = {
  client_id: 'native',
  response_type: 'code',
  scope: 'openid offline_access',
  state: 's',
  redirect_uri: REDIRECT,
  code_challenge: challenge,
  code_challenge_method: 'S256',
}
export type Changes = Readonly<Record<string, string | undefined>>

/** A good authorization request, with changes. Undefined leaves a parameter out. */
export function authorizeForm(changes: Changes = {}): Record<string, string> {
  const members = Object.entries({ ...good, ...changes }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  )
  return Object.fromEntries(members)
}

export const authorizeUrl = (changes?: Changes): string =>
  `/oidc/authorize?${new URLSearchParams(authorizeForm(changes))}`
