import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Authority, clientAuth, newAuthority } from '../authority.js'
import { type Certificate, type Client, openClient } from '../client.js'
import { type Fixture, invalid, notFound, password, startFixture } from '../fixture.js'
import { keyAndRequest } from '../member.js'

// Authorities of third parties, from their creation to their end.

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())

const api = '/edge/client/v1'
const withCertificate = (certificate: Certificate): Client => openClient(fixture.server, api, certificate)

async function newCa(more: object = {}) {
  const authority = await newAuthority(fixture.newName())
  const usual = { certPem: authority.cert, externalIdClaim: undefined }
  return { authority, id: await fixture.make('cas', { ...usual, ...more }) }
}

async function verify({ id, authority }: { readonly id: string; readonly authority: Authority }) {
  const { verificationToken } = await fixture.get(`/cas/${id}`)
  await fixture.admin.ask(
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

interface Enrolling {
  readonly enrollment: { readonly ottca: { readonly token: string } }
}

async function ottca(caId: string) {
  const id = await fixture.make('identities', { enrollment: { ottca: caId } })
  const { enrollment } = (await fixture.get(`/identities/${id}`)) as unknown as Enrolling
  return { id, token: enrollment.ottca.token }
}

const logIn = (client: Client) =>
  client.ask<{ token: string; identityId: string }>('POST', '/authenticate?method=cert', {})

test('a token and a certificate enroll who was made before, also with an authority in between', async () => {
  const ca = await verifiedCa()
  const { id, token } = await ottca(ca.id)
  const between = await ca.authority.below('between')
  using client = withCertificate(await between.certify('device', { purpose: clientAuth }))
  await client.ask('POST', `/enroll?method=ottca&token=${token}`, {})
  expect(await logIn(client)).toMatchObject({ identityId: id })
  expect(await fixture.list(`/identities/${id}/authenticators`)).toMatchObject([{ method: 'cert' }])
})

test('a certificate alone enrolls whom nobody has made, with the attributes of its authority', async () => {
  const ca = await verifiedCa({ identityNameFormat: '[requestedName] by [commonName]' })
  using client = withCertificate(await ca.authority.certify('robot'))
  await client.ask('POST', '/enroll?method=ca', { name: 'wanted' })
  const { identityId } = await logIn(client)
  expect(await fixture.get(`/identities/${identityId}`)).toMatchObject({
    name: 'wanted by robot',
    roleAttributes: ['a', 'b'],
  })
  expect(await fixture.refusalOf('POST', '/enroll?method=ca', {}, client)).toEqual([409, 'CERT_IN_USE'])
})

test('who is known by a claim enrolls once and logs in with every certificate that makes it', async () => {
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
  await first.ask('POST', '/enroll?method=ca', {})
  using second = withCertificate(await ca.authority.certify('second', { uri }))
  const { identityId } = await logIn(second)
  expect(await fixture.get(`/identities/${identityId}`)).toMatchObject({ externalId: uri })
  const nameless = withCertificate(await ca.authority.certify('third'))
  const refusal = await fixture.refusalOf('POST', '/enroll?method=ca', {}, nameless)
  expect(refusal).toEqual([400, 'MISSING_CERT_CLAIM'])
})

test('an authority that nobody has verified is good for nothing', async () => {
  const ca = await newCa()
  const { token } = await ottca(ca.id)
  using client = withCertificate(await ca.authority.certify('device'))
  const enroll = (query: string) => fixture.refusalOf('POST', `/enroll?${query}`, {}, client)
  expect(await enroll(`method=ottca&token=${token}`)).toEqual([400, 'ENROLLMENT_CA_NOT_VALID'])
  expect(await enroll('method=ca')).toEqual([400, 'CERT_FAILED_VALIDATION'])
  await verify(ca)
  await client.ask('POST', `/enroll?method=ottca&token=${token}`, {})
})

test('logins end with the permission to log in, at once', async () => {
  const ca = await verifiedCa()
  using client = withCertificate(await ca.authority.certify('device'))
  await client.ask('POST', '/enroll?method=ca', {})
  await fixture.admin.ask('PATCH', `/cas/${ca.id}`, { isAuthEnabled: false })
  const refusal = await fixture.refusalOf('POST', '/authenticate?method=cert', {}, client)
  expect(refusal).toEqual([401, 'INVALID_AUTH'])
})

test('with an authority go its enrollments, its authenticators and their sessions', async () => {
  const ca = await verifiedCa()
  const [enrolled, waiting] = [await ottca(ca.id), await ottca(ca.id)]
  using client = withCertificate(await ca.authority.certify('device'))
  await client.ask('POST', `/enroll?method=ottca&token=${enrolled.token}`, {})
  const { token } = await logIn(client)
  client.use(token)
  expect(await client.ask('GET', '/current-identity')).toMatchObject({ id: enrolled.id })
  await fixture.admin.ask('DELETE', `/cas/${ca.id}`)
  expect(await fixture.list(`/identities/${enrolled.id}/authenticators`)).toEqual([])
  expect(await fixture.list(`/identities/${waiting.id}/enrollments`)).toEqual([])
  expect(await fixture.list(`/api-sessions?filter=${encodeURIComponent(`token = "${token}"`)}`)).toEqual([])
  const refusal = await fixture.refusalOf('POST', '/authenticate?method=cert', {}, client)
  expect(refusal).toEqual([401, 'INVALID_AUTH'])
})

test('a patch keeps the claim of an authority, or changes the part that it names', async () => {
  const { admin, get } = fixture
  const path = `/cas/${await fixture.make('cas')}`
  const { externalIdClaim } = await get(path)
  await admin.ask('PATCH', path, { name: fixture.newName() })
  expect(await get(path)).toMatchObject({ externalIdClaim })
  await admin.ask('PATCH', path, { externalIdClaim: { parserCriteria: ':' } })
  expect(await get(path)).toMatchObject({
    externalIdClaim: { ...(externalIdClaim as object), parserCriteria: ':' },
  })
})

test('an authority that is none, or a claim that no certificate can make, is bad input', async () => {
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

test('each method has an operation of its own, for its own tokens alone', async () => {
  const { get, make, newName, refusalOf, statusOfLogin, stranger } = fixture
  const tokenOf = async (method: string, wish: unknown) => {
    const id = await make('identities', { enrollment: { [method]: wish } })
    const { enrollment } = (await get(`/identities/${id}`)) as {
      enrollment: Record<string, { token: string }>
    }
    return enrollment[method]?.token
  }
  const { csr } = await keyAndRequest()
  const token = await tokenOf('ott', true)
  const wrong = await refusalOf('POST', '/enroll/ottca', { token }, stranger)
  expect(wrong).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
  const chain = expect.stringMatching(/^-----BEGIN CERTIFICATE/)
  expect(await stranger.ask('POST', '/enroll/ott', { token, clientCsr: csr })).toMatchObject({
    cert: chain,
    ca: expect.stringContaining('BEGIN CERTIFICATE'),
  })

  const username = `user-${newName()}`
  const path = `/enroll/updb?token=${await tokenOf('updb', username)}`
  expect(await refusalOf('POST', path, { username, password: 'abc' }, stranger)).toEqual(invalid('password'))
  await stranger.ask('POST', path, { username, password })
  expect(await statusOfLogin(username)).toBe(200)

  const ca = await verifiedCa()
  using device = withCertificate(await ca.authority.certify('device'))
  await device.ask('POST', '/enroll/ottca', { token: (await ottca(ca.id)).token })
  using robot = withCertificate(await ca.authority.certify('robot'))
  await robot.ask('POST', '/enroll/ca')
  for (const client of [device, robot]) await logIn(client)
})

test('a router enrolls by the operation for routers', async () => {
  const { get, make, stranger } = fixture
  const id = await make('edge-routers')
  const { enrollmentToken: token } = await get(`/edge-routers/${id}`)
  const { csr } = await keyAndRequest(id)
  const enrolled = await stranger.ask('POST', '/enroll/erott', { token, clientCsr: csr, serverCsr: csr })
  const chain = expect.stringMatching(/BEGIN CERTIFICATE/)
  expect(enrolled).toEqual({ ca: chain, cert: chain, serverCert: chain })
  expect(await get(`/edge-routers/${id}`)).toMatchObject({ isVerified: true })
})
