import { noQuery } from '@overlay/store/kind-store'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authority } from './certificates.js'
import { as, bytes, parsed, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let identity: TestIdentity
let one: Replica
let count = 0
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const kind = 'external-jwt-signers'
const pem = async (name = 'signer') => (await authority(name)).certificate.toString()
const bodyOf = (more: object = {}) => {
  const name = `signer ${++count}`
  return { name, enabled: true, issuer: `https://${count}.example`, audience: 'network', ...more }
}
const create = (body: object) => one.entities.create({ kind, json: bytes(body) }, system())
const patch = (id: string, body: object) =>
  one.entities.update({ ref: { kind, id }, json: bytes(body), mask: Object.keys(body) }, system())
const get = async (id: string) =>
  parsed((await one.entities.get({ ref: { kind, id }, perspective: undefined }, system())).json)
const never = '0001-01-01T00:00:00.000Z'

test('a certificate yields the common name and the dates', async () => {
  const { certificate } = await authority('issuer of tokens')
  const certPem = certificate.toString()
  const body = bodyOf({ certPem, externalAuthUrl: '', tags: { a: 'b' } })
  const { id } = await create(body)
  expect(await get(id)).toEqual({
    _links: { self: { href: `./${kind}/${id}` } },
    id,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    ...body,
    externalAuthUrl: null,
    kid: null,
    jwksEndpoint: null,
    claimsProperty: 'sub',
    useExternalId: false,
    clientId: null,
    scopes: null,
    commonName: 'issuer of tokens',
    fingerprint: certificate.fingerprint.replaceAll(':', '').toLowerCase(),
    notBefore: new Date(certificate.validFrom).toISOString(),
    notAfter: new Date(certificate.validTo).toISOString(),
  })
  const other = await pem('another')
  await patch(id, { certPem: other })
  expect(await get(id)).toMatchObject({ commonName: 'another', certPem: other })
})

test('a private key beside the certificate is refused, and nothing is stored', async () => {
  const key = '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n'
  const refusal = { code: 'COULD_NOT_VALIDATE', detail: { field: 'certPem', value: undefined } }
  const certPem = await pem()
  for (const text of [key + certPem, certPem + key, key])
    await expect(create(bodyOf({ certPem: text }))).rejects.toMatchObject(refusal)
  const { id } = await create(bodyOf({ certPem }))
  await expect(patch(id, { certPem: certPem + key })).rejects.toMatchObject(refusal)
  expect(await get(id)).toMatchObject({ certPem })
})

test('a list of keys has none of that; a blank claim is the subject', async () => {
  const jwksEndpoint = 'https://keys.example/'
  const { id } = await create(bodyOf({ jwksEndpoint, claimsProperty: ' ' }))
  const nothing = { certPem: null, commonName: '', fingerprint: null, notBefore: never, notAfter: never }
  expect(await get(id)).toMatchObject({ ...nothing, jwksEndpoint, claimsProperty: 'sub' })
})

test('there is a certificate or a list of keys, not both', async () => {
  const code = { code: 'REFERENCED_ENTITY_NOT_FOUND' }
  const certPem = await pem()
  const jwksEndpoint = 'https://keys.example/'
  await expect(create(bodyOf())).rejects.toMatchObject(code)
  await expect(create(bodyOf({ certPem, jwksEndpoint }))).rejects.toMatchObject(code)
  const { id } = await create(bodyOf({ certPem }))
  await expect(patch(id, { jwksEndpoint })).rejects.toMatchObject(code)
})

test.each([
  'javascript:alert(1)',
  'file:///etc/passwd',
  'data:text/html,x',
  'login.example',
  ' javascript:x',
])('%s is no address for logins or keys', async (address) => {
  const refusal = (field: string) => ({ code: 'COULD_NOT_VALIDATE', detail: { field, value: address } })
  const certPem = await pem()
  const [externalAuthUrl, jwksEndpoint] = [address, address]
  await expect(create(bodyOf({ certPem, externalAuthUrl }))).rejects.toMatchObject(refusal('externalAuthUrl'))
  await expect(create(bodyOf({ jwksEndpoint }))).rejects.toMatchObject(refusal('jwksEndpoint'))
  const { id } = await create(bodyOf({ certPem, externalAuthUrl: 'HTTPS://login.example/?a=b' }))
  await expect(patch(id, { externalAuthUrl })).rejects.toMatchObject(refusal('externalAuthUrl'))
})

test('exactly one certificate is expected', async () => {
  for (const certPem of ['nope', (await pem()) + (await pem())])
    await expect(create(bodyOf({ certPem }))).rejects.toMatchObject({ code: 'INVALID_CERT_PEM' })
})

test.each(['name', 'issuer', 'kid', 'fingerprint'])('no two have the same %s', async (field) => {
  const certPem = await pem()
  const first = { ...bodyOf({ certPem }), kid: `kid ${++count}` }
  await create(first)
  const value = (first as Record<string, unknown>)[field]
  const other = field === 'fingerprint' ? { certPem } : { certPem: await pem(), [field]: value }
  await expect(create(bodyOf(other))).rejects.toMatchObject({ code: 'COULD_NOT_VALIDATE', detail: { field } })
})

test('a caller without session sees the enabled signers, with the members to choose one', async () => {
  const shown = bodyOf({
    certPem: await pem(),
    externalAuthUrl: 'https://login.example/',
    scopes: ['b', 'a'],
  })
  const { id } = await create(shown)
  await create(bodyOf({ certPem: await pem(), enabled: false, name: `${shown.name} disabled` }))
  const perspective = {
    asIdentity: '',
    configTypes: [],
    hasConfigTypes: false,
    policyType: '',
    asClient: true,
  }
  const query = { ...noQuery, filter: `name contains "${shown.name}"` }
  const page = await one.entities.list({ kind, query, within: undefined, perspective }, as({}))
  expect(parsed(page.rows)).toEqual([
    {
      _links: { self: { href: `./${kind}/${id}` } },
      id,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      tags: {},
      name: shown.name,
      externalAuthUrl: 'https://login.example/',
      scopes: ['a', 'b'],
    },
  ])
})

const policyOf = (extJwt: object, secondary: object) => ({
  name: `policy ${++count}`,
  primary: {
    cert: { allowed: true, allowExpiredCerts: false },
    extJwt,
    updb: {
      allowed: true,
      lockoutDurationMinutes: 0,
      maxAttempts: 0,
      minPasswordLength: 5,
      requireMixedCase: false,
      requireNumberChar: false,
      requireSpecialChar: false,
    },
  },
  secondary: { requireTotp: false, ...secondary },
})
const policies = 'auth-policies'

test.each([
  ['allows', 'primary.extJwt.allowedSigners'],
  ['requires', 'secondary.requireExtJwtSigner'],
])('a signer stays while a policy %s it', async (_verb, field) => {
  const { id } = await create(bodyOf({ certPem: await pem() }))
  const isAllowed = field.startsWith('primary')
  const body = policyOf(
    { allowed: true, allowedSigners: isAllowed ? [id] : [] },
    isAllowed ? {} : { requireExtJwtSigner: id },
  )
  const { id: policyId } = await one.entities.create({ kind: policies, json: bytes(body) }, system())
  await expect(one.entities.delete({ kind, id }, system())).rejects.toMatchObject({
    code: 'CAN_NOT_DELETE_REFERENCED_ENTITY',
    detail: { field, value: [policyId] },
  })
  await one.entities.delete({ kind: policies, id: policyId }, system())
  await one.entities.delete({ kind, id }, system())
})

test('a policy and the end of its signer meet: one of them is refused', async () => {
  for (let round = 0; round < 5; round++) {
    const { id } = await create(bodyOf({ certPem: await pem() }))
    const body = policyOf({ allowed: true, allowedSigners: [id] }, {})
    const results = await Promise.allSettled([
      one.entities.create({ kind: policies, json: bytes(body) }, system()),
      one.entities.delete({ kind, id }, system()),
    ])
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  }
})
