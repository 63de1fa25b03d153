import { withLoadedRows } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pkiEffects } from '../src/consumers/pki.js'
import { authority, certify, ExtendedKeyUsageExtension, type Holder, type Profile } from './certificates.js'
import { bytes, login, parsed, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let identity: TestIdentity
let one: Replica
let two: Replica
let count = 0
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const effects = pkiEffects
const upto = { timeline: '', number: 0 }
const changeOf = (id: string, json: object | null) => ({
  kind: 'cas',
  id,
  json: json ? bytes(json) : Buffer.alloc(0),
  atMs: 0,
  number: 0,
})

/** A change of pki, with its effects here. */
const publish = (id: string, json: object | null) =>
  one.changeLog.write(system(), async (tx) => ({
    result: undefined,
    changes: await effects.apply(tx, [changeOf(id, json)], upto),
  }))

/** An authority that pki knows, and its certificates. */
async function newCa(more: object = {}) {
  const id = `ca-${++count}`
  const holder = await authority(id)
  const row = {
    id,
    name: id,
    certPem: holder.certificate.toString(),
    isVerified: true,
    isAuthEnabled: true,
    isAutoCaEnrollmentEnabled: true,
    isOttCaEnrollmentEnabled: true,
    identityRoles: ['staff'],
    identityNameFormat: '[caName]-[commonName]',
    'externalIdClaim.location': null,
    'externalIdClaim.matcher': null,
    'externalIdClaim.matcherCriteria': null,
    'externalIdClaim.parser': null,
    'externalIdClaim.parserCriteria': null,
    'externalIdClaim.index': null,
    tags: {},
    isSystem: false,
    ...more,
  }
  await publish(id, row)
  const leaf = (name: string, profile: Partial<Profile> = {}) => certify({ name, issuer: holder, ...profile })
  return { id, row, leaf }
}

/** The identity is the part of a common name before the dot. */
const claim = {
  'externalIdClaim.location': 'COMMON_NAME',
  'externalIdClaim.matcher': 'PREFIX',
  'externalIdClaim.matcherCriteria': 'dev-',
  'externalIdClaim.parser': 'SPLIT',
  'externalIdClaim.parserCriteria': '.',
  'externalIdClaim.index': 0,
}

const presented = (...holders: readonly Holder[]) => holders.map(({ certificate }) => certificate.raw)
const enroll = (leaf: Holder, name = '', by: Replica = one) =>
  by.identity.enrollByCertificate({ name, peerCertificates: presented(leaf) }, system())
const logIn = (leaf: Holder) =>
  one.identity.authenticate(login({ method: 'cert', peerCertificates: presented(leaf) }), system())
const shown = async (id: string) =>
  parsed((await one.entities.get({ ref: { kind: 'identities', id }, perspective: undefined }, system())).json)
async function person(): Promise<string> {
  const body = { name: `person ${++count}`, type: 'Default', isAdmin: false }
  return (await one.entities.create({ kind: 'identities', json: bytes(body) }, system())).id
}
const redemption = (identityId: string, caId: string, leaf: Holder) => ({
  identityId,
  enrollmentId: `enrollment ${++count}`,
  certPem: '',
  isIssuedByNetwork: false,
  username: '',
  password: '',
  caId,
  peerCertificates: presented(leaf),
})
const authenticatorsOf = async (identityId: string) =>
  (await one.db.query(sql`select id from authenticator where identity_id = ${identityId}`)).rows

const refused = { code: 'INVALID_AUTH' }
const notGood = { code: 'CERT_FAILED_VALIDATION' }

test('without an authority no certificate enrolls', async () => {
  const leaf = await certify({ name: 'nobody' })
  await expect(enroll(leaf)).rejects.toMatchObject({ code: 'ENROLLMENT_NO_VALID_CAS' })
})

test('a certificate makes an identity, once, and logs it in', async () => {
  const ca = await newCa()
  const leaf = await ca.leaf('robot')
  const { id } = await enroll(leaf)
  expect(await shown(id)).toMatchObject({
    name: `${ca.id}-robot`,
    roleAttributes: ['staff'],
    externalId: null,
    isAdmin: false,
  })
  expect(parsed((await logIn(leaf)).json)).toMatchObject({ identityId: id, isCertExtendable: false })
  await expect(enroll(leaf)).rejects.toMatchObject({ code: 'CERT_IN_USE' })
})

test('a format may let clients choose their name; taken ones get numbers, in the end their id', async () => {
  const ca = await newCa({ identityNameFormat: '[requestedName] of [caId]' })
  const nameOf = async (requested: string) => {
    const { id } = await enroll(await ca.leaf('x'), requested)
    return { id, name: (await shown(id)).name }
  }
  const unnamed = await nameOf('')
  expect(unnamed.name).toBe(`${unnamed.id} of ${ca.id}`)
  const names: string[] = []
  let last = { id: '', name: '' as unknown }
  for (let i = 0; i < 10; i++) {
    last = await nameOf('bob')
    names.push(String(last.name))
  }
  const first = `bob of ${ca.id}`
  expect(names.slice(0, 3)).toEqual([first, `${first}000001`, `${first}000001000002`])
  expect(last.name).toBe(`${first}-${last.id}`)
})

test('concurrent enrollments with the same name get different names', async () => {
  const ca = await newCa({ identityNameFormat: 'same' })
  const leaves = await Promise.all([1, 2, 3, 4, 5, 6].map(() => ca.leaf('x')))
  const enrolled = await Promise.all(leaves.map((leaf, i) => enroll(leaf, '', i % 2 ? one : two)))
  expect(new Set(enrolled.map(({ id }) => id)).size).toBe(6)
})

test('an invalid name is refused', async () => {
  const ca = await newCa({ identityNameFormat: '[requestedName]' })
  for (const name of ['\0', 'x'.repeat(1001)])
    await expect(enroll(await ca.leaf('x'), name)).rejects.toMatchObject({ code: 'COULD_NOT_VALIDATE' })
})

const serverAuth = new ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.1'])
const yesterday = new Date(Date.now() - 86_400_000)

test.each<[string, object, Partial<Profile>]>([
  ['an authority that is not verified', { isVerified: false }, {}],
  ['an authority that does not let it', { isAutoCaEnrollmentEnabled: false }, {}],
  ['a certificate for servers alone', {}, { extensions: [serverAuth] }],
  ['a certificate that has run out', {}, { from: new Date(0), to: yesterday }],
])('%s does not enroll', async (_what, more, profile) => {
  const ca = await newCa(more)
  await expect(enroll(await ca.leaf('x', profile))).rejects.toMatchObject(notGood)
})

test('no certificate, or one of another authority, does not enroll', async () => {
  await newCa()
  await expect(enroll(await certify({ name: 'self' }))).rejects.toMatchObject(notGood)
  const nothing = { name: '', peerCertificates: [] }
  await expect(one.identity.enrollByCertificate(nothing, system())).rejects.toMatchObject(notGood)
})

test('an identity with a claim logs in with every certificate that contains it', async () => {
  const ca = await newCa(claim)
  const externalId = `robot${++count}`
  const { id } = await enroll(await ca.leaf(`dev-${externalId}.first`))
  expect(await shown(id)).toMatchObject({ externalId, authenticators: {} })
  const renewed = await ca.leaf(`dev-${externalId}.second`)
  expect(parsed((await logIn(renewed)).json)).toMatchObject({
    identityId: id,
    authenticatorId: 'internal',
    isCertExtendable: false,
  })
  await expect(enroll(renewed)).rejects.toMatchObject({ code: 'CERT_IN_USE' })
})

test('an external id is bound to the authority that certified it first, and to no other', async () => {
  const [first, other] = [await newCa(claim), await newCa(claim)]
  const enrolled = `robot${++count}`
  await enroll(await first.leaf(`dev-${enrolled}.x`))
  await expect(logIn(await other.leaf(`dev-${enrolled}.x`))).rejects.toMatchObject(refused)

  const externalId = `external${++count}`
  const id = await person()
  const patch = (value: string) =>
    one.entities.update(
      { ref: { kind: 'identities', id }, json: bytes({ externalId: value }), mask: ['externalId'] },
      system(),
    )
  await patch(externalId)
  const of = (ca: typeof first) => ca.leaf(`dev-${externalId}.x`)
  await logIn(await of(first))
  await expect(logIn(await of(other))).rejects.toMatchObject(refused)
  await patch('')
  await patch(externalId) // an admin may let another one in
  await logIn(await of(other))
  await expect(logIn(await of(first))).rejects.toMatchObject(refused)
  await publish(other.id, null) // and so may one that deletes the authority
  await logIn(await of(first))
})

test('a claim decides alone: a certificate whose claim names no identity does not log in by itself', async () => {
  const ca = await newCa(claim)
  const leaf = await ca.leaf('dev-stranger.first')
  await one.identity.addAuthenticator(redemption(await person(), ca.id, leaf), system())
  await expect(logIn(leaf)).rejects.toMatchObject(refused)
})

test('a certificate without the claim does not enroll, but logs in as the one that it is', async () => {
  const ca = await newCa(claim)
  const leaf = await ca.leaf('other')
  await expect(enroll(leaf)).rejects.toMatchObject({ code: 'MISSING_CERT_CLAIM' })
  const identityId = await person()
  await one.identity.addAuthenticator(redemption(identityId, ca.id, leaf), system())
  expect(parsed((await logIn(leaf)).json)).toMatchObject({ identityId })
})

test('an enrollment for one authority takes no certificate of another, and its own once', async () => {
  const [ca, other, identityId] = [await newCa(), await newCa(), await person()]
  const foreign = redemption(identityId, ca.id, await other.leaf('x'))
  await expect(one.identity.addAuthenticator(foreign, system())).rejects.toMatchObject(notGood)
  const leaf = await ca.leaf('x')
  const good = redemption(identityId, ca.id, leaf)
  const answers = await Promise.all(
    [one, two, one].map((replica) => replica.identity.addAuthenticator(good, system())),
  )
  expect(answers.filter(({ created }) => created)).toHaveLength(1)
  const again = one.identity.addAuthenticator(redemption(await person(), ca.id, leaf), system())
  const { fingerprint } = leaf.certificate
  await expect(again).rejects.toMatchObject({
    code: 'CERT_IN_USE',
    data: { fingerprint: fingerprint.replaceAll(':', '').toLowerCase() },
  })
})

test('an authority admits no login while that is disabled', async () => {
  const ca = await newCa()
  const leaf = await ca.leaf('x')
  await enroll(leaf)
  await publish(ca.id, { ...ca.row, isAuthEnabled: false })
  await expect(logIn(leaf)).rejects.toMatchObject(refused)
  await publish(ca.id, ca.row)
  await logIn(leaf)
})

test('an admin adds a certificate of an authority; its re-enrollment is for the same authority', async () => {
  const [ca, identityId] = [await newCa(), await person()]
  const leaf = await ca.leaf('x')
  const body = { method: 'cert', identityId, certPem: leaf.certificate.toString(), tags: { a: 'b' } }
  const { id } = await one.entities.create({ kind: 'authenticators', json: bytes(body) }, system())
  const own = await one.entities.get(
    { ref: { kind: 'authenticators', id }, perspective: undefined },
    system(),
  )
  expect(parsed(own.json)).toMatchObject({ identityId, method: 'cert', tags: { a: 'b' } })
  expect(parsed(own.json)).not.toHaveProperty('caId')
  await logIn(leaf)
  await one.identity.reEnrollAuthenticator({ id, expiresAtMs: Date.now() + 60_000 }, system())
  expect(identity.world.wishes.at(-1)).toMatchObject({ method: 'ottca', caId: ca.id, identityId })
})

test('with an authority go its authenticators and the sessions of both, and nothing else', async () => {
  const [ca, claiming, staying] = [await newCa(), await newCa(claim), await newCa()]
  const leaves = [await ca.leaf('x'), await claiming.leaf(`dev-x${++count}.y`), await staying.leaf('x')]
  const ids: string[] = []
  for (const leaf of leaves) ids.push((await enroll(leaf)).id)
  const sessions = await Promise.all(leaves.map(logIn))
  await publish(ca.id, null)
  await publish(claiming.id, null)
  await publish(ca.id, null) // again: nothing is left
  const [deleted, , remaining] = await Promise.all(ids.map(authenticatorsOf))
  expect([deleted?.length, remaining?.length]).toEqual([0, 1])
  const alive = await Promise.allSettled(
    sessions.map(({ token }) => one.identity.getApiSession({ bearerTokens: [], token }, system())),
  )
  expect(alive.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
  await expect(logIn(leaves[0] as Holder)).rejects.toMatchObject(refused)
  await logIn(leaves[2] as Holder)
})

test('a load takes away what belongs to authorities that it lacks, and no other authenticator', async () => {
  const [ca, staying] = [await newCa(), await newCa()]
  const [leaf, other] = [await ca.leaf('x'), await staying.leaf('x')]
  await enroll(leaf)
  await enroll(other)
  const reload = (...rows: ReturnType<typeof changeOf>[]) =>
    one.changeLog.write(system(), async (tx) => ({
      result: undefined,
      changes: await withLoadedRows(tx, [rows], (loaded) => effects.reload(tx, loaded, upto)),
    }))
  await reload(changeOf(staying.id, staying.row))
  await expect(logIn(leaf)).rejects.toMatchObject(refused)
  await logIn(other)
  await reload()
  await one.identity.authenticate(login(identity.admin), system())
})

test('an enrollment while the authority is deleted takes effect whole or not at all', async () => {
  for (let round = 0; round < 5; round++) {
    const ca = await newCa()
    const leaves = await Promise.all([1, 2, 3, 4].map((n) => ca.leaf(`n${n}`)))
    await Promise.allSettled([
      ...leaves.map((leaf, i) => enroll(leaf, '', i % 2 ? one : two).then(() => logIn(leaf))),
      publish(ca.id, null),
    ])
    const { rows } = await one.db.query(sql`
      select id from authenticator where ca_id = ${ca.id}
       union all
      select s.id from api_session s
       where authenticator_id <> 'internal' and not exists (select from authenticator a where a.id = authenticator_id)`)
    expect(rows).toEqual([])
  }
})
