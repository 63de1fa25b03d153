import { Fault } from '@overlay/rpc'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeCertificate } from '../../testing/certificates.js'
import { ALICE } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const C = '/edge/client/v1'
const M = '/edge/management/v1'
const lastCall = (method: string) => gateway.fakes.calls.findLast((call) => call.method === method)
const post = (path: string, body: unknown, tls?: { key: string; cert: string }) =>
  gateway.request(path, { method: 'POST', token: ALICE, body, ...(tls && { tls }) })

test.each([C, M])('at %s an extension shows the certificate of the connection', async (api) => {
  const leaf = await makeCertificate('leaf')
  gateway.fakes.instead.set('identity.extendOwnAuthenticator', async () => ({ certPem: 'c', caPem: '\nca' }))
  const path = `${api}/current-identity/authenticators/a1/extend`
  const answer = await post(path, { clientCertCsr: 'csr' }, { key: leaf.keyPem, cert: leaf.pem })
  expect([answer.status, answer.json]).toEqual([200, { data: { ca: '\nca', clientCert: 'c' }, meta: {} }])
  expect(lastCall('identity.extendOwnAuthenticator')?.request).toEqual({
    id: 'a1',
    csrPem: 'csr',
    peerCertificates: [Buffer.from(leaf.certificate.rawData)],
  })
})

test('a verification needs no certificate of the connection', async () => {
  gateway.fakes.instead.set('identity.verifyOwnAuthenticator', async () => ({ id: 'a1' }))
  const path = `${C}/current-identity/authenticators/a1/extend-verify`
  const answer = await post(path, { clientCert: 'pem' })
  expect([answer.status, answer.json]).toEqual([200, { data: {}, meta: {} }])
  expect(lastCall('identity.verifyOwnAuthenticator')?.request).toEqual({ id: 'a1', certPem: 'pem' })
})

test('a session certificate comes with its link and what to trust', async () => {
  gateway.fakes.instead.set('identity.createSessionCertificate', async () => ({
    id: 'c1',
    chainPem: 'chain',
    caPem: '\nca',
  }))
  const answer = await post(`${C}/current-api-session/certificates`, { csr: 'csr' })
  expect(answer.status).toBe(201)
  expect(answer.json).toEqual({
    data: {
      _links: { self: { href: './current-api-session/certificates/c1' } },
      id: 'c1',
      cas: '\nca',
      certificate: 'chain',
    },
    meta: {},
  })
})

test.each([C, M])('at %s a code of the second factor buys a token that says when', async (api) => {
  gateway.fakes.instead.set('oidc.createTotpToken', async () => ({
    token: 'eyJ',
    issuedAtMs: 1_700_000_000_000,
  }))
  const path = `${api}/current-api-session/totp-token`
  const answer = await post(path, { code: '123456' })
  const data = { token: 'eyJ', issuedAt: '2023-11-14T22:13:20.000Z' }
  expect([answer.status, answer.json]).toEqual([200, { data, meta: {} }]) // wire: not 201
  expect(lastCall('oidc.createTotpToken')?.request).toEqual({ code: '123456' })
  expect((await post(path, {})).status).toBe(400)
  expect((await gateway.request(path, { method: 'POST', body: { code: '123456' } })).status).toBe(401)
})

test('a session certificate is shown without meta', async () => {
  const { json } = await gateway.request(`${C}/current-api-session/certificates/c1`, { token: ALICE })
  expect(json).toMatchObject({ data: { id: 'c1' }, meta: null })
  expect(lastCall('identity.entities.get')?.request).toMatchObject({
    ref: { kind: 'current-api-session/certificates', id: 'c1' },
  })
})

test.each([
  ['GET', 'identity.entities.get'],
  ['DELETE', 'identity.entities.delete'],
])('%s of a missing certificate does not name it', async (method, call) => {
  gateway.fakes.instead.set(call, async () => {
    throw new Fault('NOT_FOUND', 'apiSessionCertificate with id c1 not found')
  })
  const { status, json } = await gateway.request(`${C}/current-api-session/certificates/c1`, {
    method,
    token: ALICE,
  })
  expect([status, json.error?.code, json.error?.cause]).toEqual([404, 'NOT_FOUND', undefined])
  gateway.fakes.instead.delete(call)
})

test.each([
  ['/current-identity/authenticators/a1/extend', 'clientCertCsr'],
  ['/current-identity/authenticators/a1/extend-verify', 'clientCert'],
  ['/current-api-session/certificates', 'csr'],
])('%s needs %s', async (path, field) => {
  const { status, json } = await post(C + path, {})
  expect([status, json.error?.code, json.error?.cause?.field]).toEqual([400, 'COULD_NOT_VALIDATE', field])
})

test('the management API has no session certificates', async () => {
  expect((await gateway.request(`${M}/current-api-session/certificates`, { token: ALICE })).status).toBe(404)
})
