import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Fixture, filter, invalid, startFixture } from '../fixture.js'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture({ shared: true })
})
afterAll(() => fixture[Symbol.asyncDispose]())

const AUTHENTICATE = '/authenticate?method=password'

/** The answer to a client that only announces its body. */
async function announced(path: string, bytes: number) {
  const [address = ''] = fixture.server.addresses
  const agent = new Agent({ ca: fixture.server.caPem })
  const headers = { 'content-type': 'application/json', 'content-length': bytes }
  const outgoing = request(`https://${address}/edge/client/v1${path}`, { method: 'POST', agent, headers })
  outgoing.flushHeaders()
  const [answer] = await once(outgoing, 'response')
  const body = JSON.parse(await text(answer)) as { error: { code: string } }
  outgoing.on('error', () => undefined)
  agent.destroy()
  return [answer.statusCode, body.error.code]
}

test('a large body is refused by its announced length if no session is required', async () => {
  for (const path of [
    AUTHENTICATE,
    '/enroll?method=ott',
    '/enroll/updb?token=7b8de3a8-3c2a-4c3c-9d6c-111111111111',
  ])
    expect(await announced(path, 81_921)).toEqual([400, 'COULD_NOT_READ_BODY'])
})

test('thousands of wrong or unknown config types are one error', async () => {
  const by = fixture.anonymous
  const zeros = { username: 'admin', password: 'wrong one', configTypes: Array(30_000).fill(0) }
  expect(await fixture.refusalOf('POST', AUTHENTICATE, zeros, by)).toEqual(invalid('configTypes'))
  const names = { ...zeros, configTypes: Array.from({ length: 8000 }, (_, i) => `t${i}`) }
  expect(await fixture.refusalOf('POST', AUTHENTICATE, names, by)).toEqual(invalid('configTypes'))
})

test('a megabyte of errors is one error', async () => {
  const roleAttributes = Array(400_000).fill(0)
  const body = { name: fixture.newName(), encryptionRequired: true, roleAttributes }
  expect(await fixture.refusalOf('POST', '/services', body)).toEqual(invalid('roleAttributes'))
})

test('a login with the maximum number of config types works', async () => {
  const { username } = await fixture.createUser()
  const configTypes = Array.from({ length: 500 }, (_, i) => `unknown-${i}`)
  const login = { username, password: 'correct horse', configTypes }
  expect((await fixture.anonymous.call('POST', AUTHENTICATE, login)).status).toBe(200)
})

test('filters are limited if no session is required', async () => {
  const conditions = (count: number) =>
    Array.from({ length: count }, (_, i) => `name icontains "${i}"`).join(' or ')
  const list = (count: number) => `/external-jwt-signers?${filter(conditions(count))}`
  const { anonymous } = fixture
  expect(await fixture.refusalOf('GET', list(800), undefined, anonymous)).toEqual([400, 'INVALID_FILTER'])
  expect(await fixture.refusalOf('GET', list(11), undefined, anonymous)).toEqual([400, 'INVALID_FILTER'])
  expect((await anonymous.call('GET', list(10))).status).toBe(200)
  expect((await fixture.admin.call('GET', list(500))).status).toBe(200)
})

test('a signer can send its clients only to http and https addresses', async () => {
  const sample = await fixture.sampleOf('external-jwt-signers')
  const body = { ...sample, externalAuthUrl: 'javascript:alert(1)' }
  expect(await fixture.refusalOf('POST', '/external-jwt-signers', body)).toEqual(invalid('externalAuthUrl'))
})
