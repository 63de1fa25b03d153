import { X509Certificate } from 'node:crypto'
import { Fault } from '@overlay/rpc'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeCertificate } from '../../testing/certificates.js'
import { ADMIN, ALICE } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { yamlOf } from '../openapi/document.js'
import { certificateBag } from './cas.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const M = '/edge/management/v1'
const C = '/edge/client/v1'

test.each([
  '/',
  '/version',
  '/edge/v1/version',
  `${C}`,
  `${M}/`,
  `${M}/version/`,
  '/version?rejectUnauthorized=false',
])('the version is at %s', async (path) => {
  const { status, json } = await gateway.request(path)
  expect(status).toBe(200)
  expect(json).toMatchObject({
    data: {
      apiVersions: {
        edge: { v1: { path: C, apiBaseUrls: [`https://localhost:1280${C}`] } },
        'edge-client': { v1: { path: C } },
        'edge-management': { v1: { path: M } },
        'edge-oidc': { v1: { path: '/oidc', apiBaseUrls: ['https://localhost:1280/oidc'] } },
      },
      capabilities: ['OIDC_AUTH'],
      version: 'v1.1.13',
    },
    meta: {},
  })
})

test('without OpenID Connect, neither its capability nor its path is announced', async () => {
  await using legacy = await startGateway({ announcesOidc: false })
  const { data } = (await legacy.request('/version')).json
  expect(data).toMatchObject({ capabilities: [] })
  expect(data).not.toHaveProperty('apiVersions.edge-oidc')
})

test('protocols belong to the client API alone', async () => {
  expect((await gateway.request(`${C}/protocols`)).json.data).toEqual({
    https: { address: 'localhost:1280' },
  })
  expect((await gateway.request(`${M}/protocols`)).status).toBe(404)
})

test('the trust bundle comes as lines of base64, whatever is accepted', async () => {
  const { pem } = await makeCertificate('root', undefined, true)
  gateway.fakes.instead.set('pki.getTrustBundle', async () => ({ pems: [pem], trustDomain: '', keyId: '' }))
  const { headers, text } = await gateway.request('/.well-known/est/cacerts', {
    headers: { accept: 'application/json' },
  })
  expect(headers).toMatchObject({
    'content-type': 'application/pkcs7-mime',
    'content-transfer-encoding': 'base64',
  })
  expect(
    text
      .split('\n')
      .slice(0, -1)
      .every((line) => line.length === 64),
  ).toBe(true)
  expect(Buffer.from(text, 'base64').includes(new X509Certificate(pem).raw)).toBe(true)
})

test('a bag of certificates is signed data without signatures', () => {
  expect(certificateBag([]).toString('hex')).toBe(
    '302706092a864886f70d010702a01a30180201013100300b06092a864886f70d010701a000a1003100',
  )
})

test('a login shows the client certificates and opens a session', async () => {
  const root = await makeCertificate('root', undefined, true)
  const leaf = await makeCertificate('leaf', root)
  const { headers, json } = await gateway.request(`${M}/authenticate?method=cert`, {
    method: 'POST',
    body: { configTypes: ['all'], sdkInfo: { appId: 'x', other: 1 } },
    headers: { authorization: 'Bearer abc' },
    tls: { key: leaf.keyPem, cert: leaf.pem + root.pem },
  })
  expect(headers).toMatchObject({
    'zt-session': ADMIN,
    'expiration-seconds': '1800',
    'cache-control': 'no-store',
  })
  expect(json.data).toMatchObject({ token: ADMIN, expirationSeconds: 1800 })
  const { request } = gateway.fakes.calls.findLast(({ method }) => method === 'identity.authenticate') ?? {}
  expect(request).toMatchObject({
    method: 'cert',
    configTypes: ['all'],
    bearerTokens: ['abc'],
    ipAddress: '127.0.0.1',
    sdkInfo: Buffer.from('{"appId":"x"}'),
    envInfo: Buffer.alloc(0),
  })
  expect(presentedIn(request)).toEqual(['CN=leaf'])
})

test('a login that must wait for others is answered late, so that it is not repeated at once', async () => {
  const refused = new Promise<void>((resolve) => {
    gateway.fakes.instead.set('identity.authenticate', async () => {
      resolve()
      throw new Fault('SERVER_TOO_MANY_REQUESTS')
    })
  })
  const answered: string[] = []
  const login = gateway
    .request(`${C}/authenticate?method=password`, {
      method: 'POST',
      body: { username: 'alice', password: 'right-one' },
    })
    .then(({ status, headers }) => answered.push(`${status} ${headers['retry-after']}`))
  await refused
  await gateway.request('/version').then(() => answered.push('version'))
  await login
  expect(answered).toEqual(['version', '429 1'])
  gateway.fakes.instead.delete('identity.authenticate')
})

test('a login by a certificate shows all of its certificates where identity requires them', async () => {
  const root = await makeCertificate('root', undefined, true)
  const leaf = await makeCertificate('leaf', root)
  const presented: object[] = []
  gateway.fakes.instead.set('identity.authenticate', async (request: unknown) => {
    const { isLeafAlone } = request as { readonly isLeafAlone: boolean }
    presented.push({ isLeafAlone, subjects: presentedIn(request) })
    throw new Fault(isLeafAlone ? 'CHAIN_REQUIRED' : 'INVALID_AUTH')
  })
  const { status, json } = await gateway.request(`${M}/authenticate?method=cert`, {
    method: 'POST',
    tls: { key: leaf.keyPem, cert: leaf.pem + root.pem },
  })
  gateway.fakes.instead.delete('identity.authenticate')
  expect([status, json.error?.code]).toEqual([401, 'INVALID_AUTH'])
  expect(presented).toEqual([
    { isLeafAlone: true, subjects: ['CN=leaf'] },
    { isLeafAlone: false, subjects: ['CN=leaf', 'CN=root'] },
  ])
})

test('what a client reports of itself can be stored with the reports of others', async () => {
  const body = {
    username: 'alice',
    password: 'right-one',
    envInfo: { os: '\ud800' },
    sdkInfo: { appId: '\udfff' },
  }
  await gateway.request(`${M}/authenticate?method=password`, { method: 'POST', body })
  const { request } = gateway.fakes.calls.findLast(({ method }) => method === 'identity.authenticate') ?? {}
  expect(request).toMatchObject({
    envInfo: Buffer.from('{"os":"\ufffd"}'),
    sdkInfo: Buffer.from('{"appId":"\ufffd"}'),
  })
})

const presentedIn = (request: unknown): string[] =>
  (request as { readonly peerCertificates: readonly Buffer[] }).peerCertificates.map(
    (der) => new X509Certificate(der).subject,
  )

test('a refused login opens nothing', async () => {
  gateway.fakes.instead.set('identity.authenticate', async () => {
    throw new Fault('INVALID_AUTH')
  })
  const { status, headers, json } = await gateway.request(`${C}/authenticate?method=password`, {
    method: 'POST',
  })
  gateway.fakes.instead.delete('identity.authenticate')
  expect([status, json.error?.code, json.error?.cause]).toEqual([401, 'INVALID_AUTH', undefined])
  expect(headers['zt-session']).toBeUndefined()
})

test('a session tells its times', async () => {
  const { json } = await gateway.request(`${C}/current-api-session`, { token: ALICE })
  expect(json.data).toMatchObject({
    token: ALICE,
    lastActivityAt: '2026-01-01T00:00:00.000Z',
    expiresAt: '2026-01-01T00:30:00.000Z',
    expirationSeconds: 1800,
  })
})

test('the current identity has other links and no meta', async () => {
  const { json } = await gateway.request(`${M}/current-identity`, { token: ALICE })
  expect(json).toEqual({
    data: {
      id: 'i-2222',
      _links: { self: { href: './current-identity' }, mfa: { href: './current-identity/mfa' } },
    },
    meta: null,
  })
})

test('service updates are the time of the last change', async () => {
  const { json } = await gateway.request(`${C}/current-api-session/service-updates`, { token: ALICE })
  expect(json).toEqual({ data: { lastChangeAt: '2026-02-02T00:00:00.000Z' }, meta: {} })
})

test('a create answers link and id', async () => {
  const { status, headers, json } = await gateway.request(`${M}/services`, {
    method: 'POST',
    token: ADMIN,
    body: { name: 'a', encryptionRequired: true },
  })
  expect(status).toBe(201)
  expect(headers.location).toBeUndefined()
  expect(json).toEqual({ data: { _links: { self: { href: './services/new-id' } }, id: 'new-id' }, meta: {} })
})

test.each(['PUT', 'PATCH', 'DELETE'])('%s answers the empty envelope', async (method) => {
  const body = method === 'DELETE' ? {} : { body: { name: 'b' } }
  const { json } = await gateway.request(`${M}/services/.a-b`, { method, token: ADMIN, ...body })
  expect(json).toEqual({ data: {}, meta: {} })
})

test('role attributes are a list of words that know one symbol', async () => {
  const { json } = await gateway.request(`${M}/service-role-attributes`, { token: ADMIN })
  expect(json).toMatchObject({ data: ['a'], meta: { filterableFields: ['id'] } })
})

test('config types are named side by side or with commas', async () => {
  await gateway.request(`${M}/services?configTypes=a,b&configTypes=c&asIdentity=bob`, { token: ADMIN })
  expect(
    gateway.fakes.calls.findLast(({ method }) => method === 'policy.entities.list')?.request,
  ).toMatchObject({
    perspective: { configTypes: ['a', 'b', 'c'], hasConfigTypes: true, asIdentity: 'bob' },
  })
})

test('only admins can take the perspective of another identity', async () => {
  await gateway.request(`${C}/services?asIdentity=bob`, { token: ALICE })
  expect(
    gateway.fakes.calls.findLast(({ method }) => method === 'policy.entities.list')?.request,
  ).toMatchObject({ perspective: undefined })
})

test('the document of the client API is listed, both are shown, as YAML or JSON', async () => {
  const { json } = await gateway.request(`${C}/specs`)
  expect(json).toMatchObject({ data: [{ id: 'edge-client' }], meta: {} })
  expect((await gateway.request(`${M}/specs`)).json).toEqual(json)
  expect((await gateway.request(`${C}/specs/edge-management`)).json.data).toMatchObject({
    id: 'edge-management',
  })
  expect((await gateway.request(`${M}/specs/nothing`)).json.error).toMatchObject({ code: 'NOT_FOUND' })
  const yaml = await gateway.request(`${C}/specs/edge-client/spec`, { headers: { accept: 'text/yaml' } })
  const own = await gateway.request(`${C}/specs/edge-client/spec`, {
    headers: { accept: 'application/json' },
  })
  expect([yaml.headers['content-type'], own.headers['content-type']]).toEqual([
    'text/yaml',
    'application/json',
  ])
  expect(yaml.text).toBe(yamlOf(own.json).trimStart())
  expect(own.json).toMatchObject({ swagger: '2.0', basePath: C, paths: { '/version': { get: {} } } })
})

test('the document of an API tells exactly the operations of its table', async () => {
  const { json } = await gateway.request(`${M}/swagger.json`)
  const { paths, definitions } = json as unknown as { paths: Record<string, object>; definitions: object }
  expect(Object.keys(paths['/services'] ?? {}).sort()).toEqual(['get', 'post'])
  expect(definitions).toMatchObject({ serviceCreate: { required: ['name', 'encryptionRequired'] } })
  expect(paths['/current-identity/edge-routers']).toBeUndefined()
})

test('the document exists as OpenAPI 3 too', async () => {
  const { json } = await gateway.request(`${M}/specs/edge-management/spec?version=3`, {
    headers: { accept: 'application/json' },
  })
  expect(json).toMatchObject({ openapi: '3.0.3', servers: [{ url: `https://localhost:1280${M}` }] })
})
