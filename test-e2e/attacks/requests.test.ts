import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Fixture, filter, invalid, startFixture } from '../fixture.js'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())

const AUTHENTICATE = '/authenticate?method=password'

/** What a client sees that only announces its body. */
async function announced(path: string, bytes: number) {
  const [address = ''] = fixture.server.addresses
  const agent = new Agent({ ca: fixture.server.caPem })
  const headers = { 'content-type': 'application/json', 'content-length': bytes }
  const asked = request(`https://${address}/edge/client/v1${path}`, { method: 'POST', agent, headers })
  asked.flushHeaders()
  const [answer] = await once(asked, 'response')
  const said = JSON.parse(await text(answer)) as { error: { code: string } }
  asked.on('error', () => undefined)
  agent.destroy()
  return [answer.statusCode, said.error.code]
}

test('a large body is refused by its announced length where no session is needed', async () => {
  for (const path of [
    AUTHENTICATE,
    '/enroll?method=ott',
    '/enroll/updb?token=7b8de3a8-3c2a-4c3c-9d6c-111111111111',
  ])
    expect(await announced(path, 65_537)).toEqual([400, 'COULD_NOT_READ_BODY'])
})

test('thousands of wrong config types, or unknown ones, are one mistake', async () => {
  const by = fixture.stranger
  const zeros = { username: 'admin', password: 'wrong one', configTypes: Array(30_000).fill(0) }
  expect(await fixture.refusalOf('POST', AUTHENTICATE, zeros, by)).toEqual(invalid('configTypes'))
  const names = { ...zeros, configTypes: Array.from({ length: 8000 }, (_, i) => `t${i}`) }
  expect(await fixture.refusalOf('POST', AUTHENTICATE, names, by)).toEqual(invalid('configTypes'))
})

test('a megabyte of mistakes is one mistake', async () => {
  const roleAttributes = Array(400_000).fill(0)
  const body = { name: fixture.newName(), encryptionRequired: true, roleAttributes }
  expect(await fixture.refusalOf('POST', '/services', body)).toEqual(invalid('roleAttributes'))
})

test('a login that names as many config types as it may still works', async () => {
  const { username } = await fixture.person()
  const configTypes = Array.from({ length: 500 }, (_, i) => `unknown-${i}`)
  const login = { username, password: 'correct horse', configTypes }
  expect((await fixture.stranger.call('POST', AUTHENTICATE, login)).status).toBe(200)
})

test('filters are short where no session is needed', async () => {
  const conditions = (count: number) =>
    Array.from({ length: count }, (_, i) => `name icontains "${i}"`).join(' or ')
  const list = (count: number) => `/external-jwt-signers?${filter(conditions(count))}`
  const { stranger } = fixture
  expect(await fixture.refusalOf('GET', list(800), undefined, stranger)).toEqual([400, 'INVALID_FILTER'])
  expect(await fixture.refusalOf('GET', list(11), undefined, stranger)).toEqual([400, 'INVALID_FILTER'])
  expect((await stranger.call('GET', list(10))).status).toBe(200)
  expect((await fixture.admin.call('GET', list(500))).status).toBe(200)
})

test('a signer sends its clients to http and https addresses only', async () => {
  const sample = await fixture.sampleOf('external-jwt-signers')
  const body = { ...sample, externalAuthUrl: 'javascript:alert(1)' }
  expect(await fixture.refusalOf('POST', '/external-jwt-signers', body)).toEqual(invalid('externalAuthUrl'))
})
