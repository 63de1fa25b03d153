import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Authority, clientAuth, newAuthority } from '../authority.js'
import { type Certificate, type Client, openClient } from '../client.js'
import { type Fixture, invalid, notFound, password, startFixture } from '../fixture.js'
import { keyAndRequest } from '../member.js'

// The life of authorities of third parties.

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture({ shared: true })
})
afterAll(() => fixture[Symbol.asyncDispose]())

const api = '/edge/client/v1'
const withCertificate = (certificate: Certificate): Client => openClient(fixture.server, api, certificate)

async function newCa(more: object = {}) {
  const authority = await newAuthority(fixture.newName())
  const usual = { certPem: authority.cert, externalIdClaim: undefined }
  return { authority, id: await fixture.createSample('cas', { ...usual, ...more }) }
}

async function verify({ id, authority }: { readonly id: string; readonly authority: Authority }) {
  const { verificationToken } = await fixture.get(`/cas/${id}`)
  await fixture.admin.request(
    'POST',
    `/cas/${id}/verify`,
    (await authority.certify(String(verificationToken))).cert,
  )
}

async function verifiedCa(more: object = {}) {
  const ca = await newCa(more)
  await verify(ca)
  return ca
}

interface IdentityWithEnrollment {
  readonly enrollment: { readonly ottca: { readonly token: string } }
}

async function ottca(caId: string) {
  const id = await fixture.createSample('identities', { enrollment: { ottca: caId } })
  const { enrollment } = (await fixture.get(`/identities/${id}`)) as unknown as IdentityWithEnrollment
  return { id, token: enrollment.ottca.token }
}

const logIn = (client: Client) =>
  client.request<{ token: string; identityId: string }>('POST', '/authenticate?method=cert', {})

test('a token and a certificate enroll an existing identity, also with an intermediate authority', async () => {
  const ca = await verifiedCa()
  const { id, token } = await ottca(ca.id)
  const between = await ca.authority.below('between')
  using client = withCertificate(await between.certify('device', { purpose: clientAuth }))
  await client.request('POST', `/enroll?method=ottca&token=${token}`, {})
  expect(await logIn(client)).toMatchObject({ identityId: id })
  expect(await fixture.list(`/identities/${id}/authenticators`)).toMatchObject([{ method: 'cert' }])
})

test('a certificate alone enrolls a new identity with the attributes of its authority', async () => {
  const ca = await verifiedCa({ identityNameFormat: '[requestedName] by [commonName]' })
  using client = withCertificate(await ca.authority.certify('robot'))
  await client.request('POST', '/enroll?method=ca', { name: 'wanted' })
  const { identityId } = await logIn(client)
  expect(await fixture.get(`/identities/${identityId}`)).toMatchObject({
    name: 'wanted by robot',
    roleAttributes: ['a', 'b'],
  })
  expect(await fixture.refusalOf('POST', '/enroll?method=ca', {}, client)).toEqual([409, 'CERT_IN_USE'])
})

test('an identity with an external id enrolls once and logs in with every certificate that has its claim', async () => {
  const externalIdClaim = {
    location: 'SAN_URI',
    matcher: 'SCHEME',
    matcherCriteria: 'spiffe',
    parser: 'NONE',
    parserCriteria: '',
    index: 0,
  }
  const ca = await verifiedCa({ externalIdClaim })
  const uri = `spiffe://factory/${fixture.newName()}`
  using first = withCertificate(await ca.authority.certify('first', { uri }))
  await first.request('POST', '/enroll?method=ca', {})
  using second = withCertificate(await ca.authority.certify('second', { uri }))
  const { identityId } = await logIn(second)
  expect(await fixture.get(`/identities/${identityId}`)).toMatchObject({ externalId: uri })
  const nameless = withCertificate(await ca.authority.certify('third'))
  const refusal = await fixture.refusalOf('POST', '/enroll?method=ca', {}, nameless)
  expect(refusal).toEqual([400, 'MISSING_CERT_CLAIM'])
})

test('an unverified authority is refused everywhere', async () => {
  const ca = await newCa()
  const { token } = await ottca(ca.id)
  using client = withCertificate(await ca.authority.certify('device'))
  const enroll = (query: string) => fixture.refusalOf('POST', `/enroll?${query}`, {}, client)
  expect(await enroll(`method=ottca&token=${token}`)).toEqual([400, 'ENROLLMENT_CA_NOT_VALID'])
  expect(await enroll('method=ca')).toEqual([400, 'CERT_FAILED_VALIDATION'])
  await verify(ca)
  await client.request('POST', `/enroll?method=ottca&token=${token}`, {})
})

test('logins fail as soon as the authority is not enabled for them', async () => {
  const ca = await verifiedCa()
  using client = withCertificate(await ca.authority.certify('device'))
  await client.request('POST', '/enroll?method=ca', {})
  await fixture.admin.request('PATCH', `/cas/${ca.id}`, { isAuthEnabled: false })
  const refusal = await fixture.refusalOf('POST', '/authenticate?method=cert', {}, client)
  expect(refusal).toEqual([401, 'INVALID_AUTH'])
})

test('the deletion of an authority deletes its enrollments, its authenticators and their sessions', async () => {
  const ca = await verifiedCa()
  const [enrolled, waiting] = [await ottca(ca.id), await ottca(ca.id)]
  using client = withCertificate(await ca.authority.certify('device'))
  await client.request('POST', `/enroll?method=ottca&token=${enrolled.token}`, {})
  const { token } = await logIn(client)
  client.use(token)
  expect(await client.request('GET', '/current-identity')).toMatchObject({ id: enrolled.id })
  await fixture.admin.request('DELETE', `/cas/${ca.id}`)
  expect(await fixture.list(`/identities/${enrolled.id}/authenticators`)).toEqual([])
  expect(await fixture.list(`/identities/${waiting.id}/enrollments`)).toEqual([])
  expect(await fixture.list(`/api-sessions?filter=${encodeURIComponent(`token = "${token}"`)}`)).toEqual([])
  const refusal = await fixture.refusalOf('POST', '/authenticate?method=cert', {}, client)
  expect(refusal).toEqual([401, 'INVALID_AUTH'])
})

test('a patch keeps the claim of an authority, or changes the part that it names', async () => {
  const { admin, get } = fixture
  const path = `/cas/${await fixture.createSample('cas')}`
  const { externalIdClaim } = await get(path)
  await admin.request('PATCH', path, { name: fixture.newName() })
  expect(await get(path)).toMatchObject({ externalIdClaim })
  await admin.request('PATCH', path, { externalIdClaim: { parserCriteria: ':' } })
  expect(await get(path)).toMatchObject({
    externalIdClaim: { ...(externalIdClaim as object), parserCriteria: ':' },
  })
})

test('a certificate that is no authority, or an impossible claim, is bad input', async () => {
  const { refusalOf, sampleOf } = fixture
  const leaf = await (await newAuthority('other')).certify('leaf')
  const sample = await sampleOf('cas')
  expect(await refusalOf('POST', '/cas', { ...sample, certPem: leaf.cert })).toEqual(invalid('certPem'))
  const externalIdClaim = { ...(sample.externalIdClaim as object), matcherCriteria: '' }
  expect(await refusalOf('POST', '/cas', { ...sample, externalIdClaim })).toEqual(
    invalid('externalIdClaim.matcherCriteria'),
  )
  expect(await refusalOf('POST', '/cas/nothing/verify', leaf.cert)).toEqual(notFound)
})

test('each method has its own operation, which accepts only its own tokens', async () => {
  const { get, createSample, newName, refusalOf, statusOfLogin, anonymous } = fixture
  const tokenOf = async (method: string, request: unknown) => {
    const id = await createSample('identities', { enrollment: { [method]: request } })
    const { enrollment } = (await get(`/identities/${id}`)) as {
      enrollment: Record<string, { token: string }>
    }
    return enrollment[method]?.token
  }
  const { csr } = await keyAndRequest()
  const token = await tokenOf('ott', true)
  const wrong = await refusalOf('POST', '/enroll/ottca', { token }, anonymous)
  expect(wrong).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
  const chain = expect.stringMatching(/^-----BEGIN CERTIFICATE/)
  expect(await anonymous.request('POST', '/enroll/ott', { token, clientCsr: csr })).toMatchObject({
    cert: chain,
    ca: expect.stringContaining('BEGIN CERTIFICATE'),
  })

  const username = `user-${newName()}`
  const path = `/enroll/updb?token=${await tokenOf('updb', username)}`
  expect(await refusalOf('POST', path, { username, password: 'abc' }, anonymous)).toEqual(invalid('password'))
  await anonymous.request('POST', path, { username, password })
  expect(await statusOfLogin(username)).toBe(200)

  const ca = await verifiedCa()
  using device = withCertificate(await ca.authority.certify('device'))
  await device.request('POST', '/enroll/ottca', { token: (await ottca(ca.id)).token })
  using robot = withCertificate(await ca.authority.certify('robot'))
  await robot.request('POST', '/enroll/ca')
  for (const client of [device, robot]) await logIn(client)
})

test('a router enrolls by the operation for routers', async () => {
  const { get } = fixture
  const { id, enrolled } = await enrolledRouter()
  const chain = expect.stringMatching(/BEGIN CERTIFICATE/)
  expect(enrolled).toEqual({ ca: chain, cert: chain, serverCert: chain })
  expect(await get(`/edge-routers/${id}`)).toMatchObject({ isVerified: true })
})

test('a router replaces its certificates with its own, once', async () => {
  const { get } = fixture
  const { id, enrolled, key } = await enrolledRouter()
  const next = await keyAndRequest(id)
  const request = { certCsr: next.csr, serverCertCsr: next.csr }
  const path = '/enroll/extend/router'
  using router = withCertificate({ cert: enrolled.cert, key })
  const other = await keyAndRequest('other')
  expect(await router.call('POST', path, { certCsr: other.csr, serverCertCsr: other.csr })).toMatchObject({
    status: 400,
    body: {
      error: { code: 'COULD_NOT_PROCESS_CSR', cause: { code: 'EDGE_ROUTER_ENROLL_COMMON_NAME_INVALID' } },
    },
  })
  const end = '-----END CERTIFICATE-----\n'
  const extended = await router.request<{ cert: string }>('POST', path, request)
  expect(await get(`/edge-routers/${id}`)).toMatchObject({
    certPem: `${extended.cert.split(end)[0]}${end}`,
    unverifiedCertPem: null,
  })
  for (const client of [router, fixture.anonymous])
    expect(await client.call('POST', path, request)).toMatchObject({ status: 401 })
  using extendedRouter = withCertificate({ cert: extended.cert, key: next.key })
  await extendedRouter.request('POST', path, request)
})

async function enrolledRouter() {
  const { get, createSample, anonymous } = fixture
  const id = await createSample('edge-routers')
  const { enrollmentToken: token } = await get(`/edge-routers/${id}`)
  const { csr, key } = await keyAndRequest(id)
  const enrolled = await anonymous.request<{ cert: string }>('POST', '/enroll/erott', {
    token,
    clientCsr: csr,
    serverCsr: csr,
  })
  return { id, enrolled, key }
}
