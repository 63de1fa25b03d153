import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Certificate } from '../client.js'
import { type Fixture, startFixture } from '../fixture.js'
import { addIssuer, type Issuer } from '../issuer.js'

// PyPI has no C SDK that knows OpenID Connect. These are the requests of version 1.17, to the letter.

const redirectUri = 'http://localhost:20314/auth/callback'

let fixture: Fixture
let issuer: Issuer
beforeAll(async () => {
  fixture = await startFixture({ gateways: 2 })
  issuer = await addIssuer(fixture.admin)
})
afterAll(() => fixture[Symbol.asyncDispose]())

type Send = (
  method: string,
  path: string,
  more?: { readonly headers?: object; readonly body?: string },
) => Promise<IncomingMessage>

/** Sends each request over a connection of its own, which the balancer gives to the other gateway. */
function openSdk(certificate?: Certificate): Send {
  const { addresses, caPem } = fixture.server
  const agent = new Agent({ ca: caPem, ...certificate })
  return (method, path, { headers = {}, body = '' } = {}) =>
    new Promise((resolve, reject) => {
      const length = { 'content-length': Buffer.byteLength(body) }
      const options = { agent, method, headers: { accept: 'application/json', ...length, ...headers } }
      request(`https://${addresses[0]}${path}`, options, resolve).on('error', reject).end(body)
    })
}

/** The SDK escapes few characters, neither `&` nor `=`. */
const encode = (pairs: readonly (readonly [string, string])[]): string =>
  pairs.map(([name, value]) => `${name}=${value.replace(/[/: ]/g, encodeURIComponent)}`).join('&')
const form = (pairs: readonly (readonly [string, string])[], headers: object = {}) => ({
  headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  body: encode(pairs),
})

/** What follows a text in the address that an answer leads to. */
const leadsTo = ({ headers: { location = '' } }: IncomingMessage, text: string): string =>
  location.slice(location.indexOf(text) + text.length)

async function authorize(send: Send, challenge: string, state: string): Promise<string> {
  const query = encode([
    ['client_id', 'openziti'],
    ['scope', 'openid offline_access'],
    ['response_type', 'code'],
    ['redirect_uri', redirectUri],
    ['code_challenge', challenge],
    ['code_challenge_method', 'S256'],
    ['state', state],
    ['audience', 'openziti'],
  ])
  const answer = await send('POST', `/oidc/authorize?${query}`)
  answer.resume()
  expect(answer.statusCode).toBe(302)
  return leadsTo(answer, 'authRequestID=')
}

interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
}

async function logIn(send: Send, method: 'cert' | 'ext-jwt', authorization?: string): Promise<Tokens> {
  const [verifier, state] = [randomBytes(40).toString('base64url'), randomBytes(30).toString('base64url')]
  const id = await authorize(send, createHash('sha256').update(verifier).digest('base64url'), state)
  const info = { sdkInfo: { type: 'ziti-sdk-c', version: '1.17.1' }, envInfo: { os: 'Linux' } }
  const login = await send('POST', `/oidc/login/${method}?id=${id}`, {
    headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
    body: JSON.stringify(info),
  })
  login.resume()
  expect(login.statusCode).toBe(302)
  const callback = await send('GET', leadsTo(login, fixture.server.addresses[0] ?? ''))
  callback.resume()
  const tokens = await send(
    'POST',
    '/oidc/oauth/token',
    form([
      ['state', state],
      ['code', leadsTo(callback, 'code=')], // with all that follows: the state is sent twice
      ['grant_type', 'authorization_code'],
      ['code_verifier', verifier],
      ['client_id', 'openziti'],
      ['redirect_uri', redirectUri],
    ]),
  )
  expect(tokens.statusCode).toBe(200)
  return (await json(tokens)) as Tokens
}

async function refresh(send: Send, { refresh_token }: Tokens): Promise<Tokens> {
  const grant = [
    ['client_id', 'openziti'],
    ['grant_type', 'refresh_token'],
    ['refresh_token', refresh_token],
  ] as const
  const authorization = `Basic ${Buffer.from('openziti:').toString('base64')}`
  return (await json(await send('POST', '/oidc/oauth/token', form(grant, { authorization })))) as Tokens
}

async function nameOf(send: Send, { access_token }: Tokens): Promise<unknown> {
  const headers = { authorization: `Bearer ${access_token}` }
  const { data } = (await json(await send('GET', '/edge/client/v1/current-identity', { headers }))) as {
    data?: { name: string; sdkInfo: object }
  }
  return data && { name: data.name, sdkInfo: data.sdkInfo }
}

test.each(['cert', 'ext-jwt'] as const)('the C SDK logs in by %s, and refreshes', async (method) => {
  const { admin, newName } = fixture
  const name = newName()
  const { id, certificate } = await admin.enroll({ name })
  const send = openSdk(method === 'cert' ? certificate : undefined)
  const tokens = await logIn(send, method, method === 'cert' ? undefined : `Bearer ${issuer.token(id)}`)
  const self = { name, sdkInfo: { type: 'ziti-sdk-c', version: '1.17.1' } }
  expect(await nameOf(send, tokens)).toEqual(self)
  expect(await nameOf(send, await refresh(send, tokens))).toEqual(self)
})
