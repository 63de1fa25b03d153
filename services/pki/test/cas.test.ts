import { randomUUID, X509Certificate } from 'node:crypto'
import { noQuery } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { context, faultOf, type Pki, type Row, startPki } from './network.js'
import { type Authority, newAuthority, newCsr, newIntermediate, newKey } from './openssl.js'

let pki: Pki
const waitedFor: unknown[] = []
let later = 0
beforeAll(async () => {
  pki = await startPki({
    now: () => new Date(Date.now() + later),
    waitForFollowers: async (written, _context, schemas) => {
      waitedFor.push([written.id, schemas])
      return written
    },
  })
})
afterAll(() => pki[Symbol.asyncDispose]())

const kind = 'cas'
let count = 0
const flags = { isAuthEnabled: true, isAutoCaEnrollmentEnabled: true, isOttCaEnrollmentEnabled: true }
const bodyOf = (more: object = {}) => ({
  name: `ca ${++count}`,
  identityRoles: ['b', 'a'],
  ...flags,
  ...more,
})
const json = (body: object) => Buffer.from(JSON.stringify(body))
const create = (body: object) => pki.entities.create({ kind, json: json(body) }, context)
const patch = (id: string, body: object, ...mask: string[]) =>
  pki.entities.update({ ref: { kind, id }, json: json(body), mask }, context)
const get = async (id: string): Promise<Row> => {
  const { json: bytes } = await pki.entities.get({ ref: { kind, id }, perspective: undefined }, context)
  return JSON.parse(Buffer.from(bytes).toString()) as Row
}
const verify = (id: string, certificatePem: string) => pki.pki.verifyCa({ id, certificatePem }, context)

async function newCa(more: object = {}) {
  const authority = newAuthority()
  const { id } = await create(bodyOf({ certPem: authority.cert, ...more }))
  return { id, authority }
}

async function verified({ id, authority }: { readonly id: string; readonly authority: Authority }) {
  await verify(id, authority.certify(String((await get(id)).verificationToken)))
}

const derOf = (pem: string): Buffer => new X509Certificate(pem).raw
const wholeClaim = {
  location: 'COMMON_NAME',
  matcher: 'PREFIX',
  matcherCriteria: 'dev-',
  parser: 'SPLIT',
  parserCriteria: '.',
  index: 1,
}

test('a new authority is not verified, and links to its operations', async () => {
  const { id, authority } = await newCa()
  const self = { href: `./cas/${id}` }
  const fingerprint = new X509Certificate(authority.cert).fingerprint.replaceAll(':', '').toLowerCase()
  expect(await get(id)).toEqual({
    _links: { self, verify: { href: `./cas/${id}/verify` }, jwt: { href: `./cas/${id}/jwt` } },
    id,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    tags: {},
    name: expect.any(String),
    certPem: authority.cert,
    fingerprint,
    isVerified: false,
    verificationToken: expect.stringMatching(/^[\w.-]{9,10}$/),
    ...flags,
    identityRoles: ['a', 'b'],
    identityNameFormat: '[caName]-[commonName]',
  })
  await verified({ id, authority })
  await patch(id, { isAutoCaEnrollmentEnabled: false }, 'isAutoCaEnrollmentEnabled')
  expect(await get(id)).toMatchObject({ isVerified: true, _links: { self } })
  expect((await get(id))._links).toEqual({ self })
})

const ours = newAuthority()

test.each([
  ['nothing', '', 'could not parse block #1'],
  ['no PEM', 'nope', 'could not parse block #1'],
  ['a request', newCsr(), 'block #1 is not a certificate'],
  ['a broken second block', ours.cert + ours.cert.replace(/[A-Za-z]{20}/, 'x'), 'could not parse block #2'],
  ['a certificate that is no authority', ours.certify('leaf'), 'certificate is not a CA'],
  [
    'a certificate of a weak key',
    newAuthority('weak', newKey('RSA-1024')).cert,
    'certificate of block #1: RSA key must have 2048 to 16384 bits',
  ],
])('%s is no authority', async (_what, certPem, reason) => {
  expect(await faultOf(create(bodyOf({ certPem })))).toEqual([
    'COULD_NOT_VALIDATE',
    { field: 'certPem', reason, value: certPem },
  ])
})

test('the same certificate is not another authority', async () => {
  const { id, authority } = await newCa()
  const [code, detail] = await faultOf(create(bodyOf({ certPem: authority.cert })))
  expect([code, detail]).toMatchObject([
    'COULD_NOT_VALIDATE',
    { field: 'certPem', reason: `certificate already used as CA ${id}` },
  ])
})

test('the order of checks of a verification is the original one', async () => {
  const { id, authority } = await newCa()
  const token = String((await get(id)).verificationToken)
  const codeOf = async (pem: string, of = id) => (await faultOf(verify(of, pem)))[0]
  const good = authority.certify(token)
  expect(await codeOf(good, 'nothing')).toBe('NOT_FOUND')
  expect(await codeOf('nope')).toBe('COULD_NOT_PARSE_BODY')
  expect(await codeOf(newCsr())).toBe('EXPECTED_PEM_CERTIFICATE')
  expect(await codeOf(good.replace(/[A-Za-z]{20}/, 'x'))).toBe('COULD_NOT_PARSE_DER_BLOCK')
  expect(await codeOf(authority.certify('wrong'))).toBe('INVALID_COMMON_NAME')
  expect(await codeOf(newAuthority().certify(token))).toBe('CERTIFICATE_FAILED_VALIDATION')
  later = 2 * 86_400_000
  expect(await codeOf(good)).toBe('CERTIFICATE_FAILED_VALIDATION')
  later = 0
  await verify(id, good + newCsr()) // what follows the block is ignored
  expect(await codeOf(good)).toBe('CA_ALREADY_VERIFIED')
})

test('an authority is verified by a certificate of an intermediate, if the chain follows', async () => {
  const { id, authority } = await newCa()
  const token = String((await get(id)).verificationToken)
  const upper = newIntermediate(authority)
  const lower = newIntermediate(upper)
  const leaf = lower.certify(token)
  const refusal = async (pem: string) => (await faultOf(verify(id, pem))).slice(0, 2)
  const refused = (reason: string) => ['CERTIFICATE_FAILED_VALIDATION', expect.stringContaining(reason)]
  for (const part of [leaf, leaf + lower.cert, leaf + upper.cert, leaf + newIntermediate(upper).cert])
    expect(await refusal(part)).toEqual(refused('an intermediate that follows the certificate'))
  expect(await refusal(lower.cert + leaf)).toEqual([
    'INVALID_COMMON_NAME',
    expect.stringContaining('must be the first one'),
  ])
  expect(await refusal(lower.cert + lower.certify('wrong'))).toEqual(['INVALID_COMMON_NAME'])
  const elsewhere = newIntermediate(newAuthority())
  expect(await refusal(elsewhere.certify(token) + elsewhere.cert)).toEqual(refused('has signed it'))
  await verify(id, leaf + authority.cert + upper.cert + lower.cert) // intermediates in any order
  expect(await get(id)).toMatchObject({ isVerified: true })
})

test.each([
  ['that is no authority', 'basicConstraints=critical,CA:FALSE', newKey(), 'has signed it'],
  ['whose key must not sign', 'basicConstraints=CA:TRUE\nkeyUsage=digitalSignature', newKey(), 'signed it'],
  ['with a weak key', 'basicConstraints=critical,CA:TRUE', newKey('RSA-1024'), 'RSA key'],
])('an intermediate %s verifies nothing', async (_what, extensions, key, reason) => {
  const { id, authority } = await newCa()
  const token = String((await get(id)).verificationToken)
  const between = newIntermediate(authority, extensions, key)
  const [code, detail] = await faultOf(verify(id, between.certify(token) + between.cert))
  expect([code, detail]).toEqual(['CERTIFICATE_FAILED_VALIDATION', expect.stringContaining(reason)])
  expect(await get(id)).toMatchObject({ isVerified: false })
})

test('an intermediate whose path length is exhausted verifies nothing', async () => {
  const { id, authority } = await newCa()
  const token = String((await get(id)).verificationToken)
  const upper = newIntermediate(authority, 'basicConstraints=critical,CA:TRUE,pathlen:0')
  const lower = newIntermediate(upper)
  const [code, detail] = await faultOf(verify(id, lower.certify(token) + lower.cert + upper.cert))
  expect([code, detail]).toEqual([
    'CERTIFICATE_FAILED_VALIDATION',
    'an intermediate may not sign this certificate',
  ])
  await verify(id, upper.certify(token) + upper.cert)
})

test('an authority is verified neither by a weak certificate nor with a weak key of its own', async () => {
  const { id, authority } = await newCa()
  const token = String((await get(id)).verificationToken)
  const refusal = async (pem: string) => (await faultOf(verify(id, pem))).slice(0, 2)
  const refused = (reason: RegExp) => ['CERTIFICATE_FAILED_VALIDATION', expect.stringMatching(reason)]
  const weakKey = { key: newKey('RSA-1024') }
  expect(await refusal(authority.certify(token, { digest: 'sha1' }))).toEqual(
    refused(/^unsupported signature/),
  )
  expect(await refusal(authority.certify(token, weakKey))).toEqual(refused(/^RSA key/))

  const weak = newAuthority('weak', newKey('RSA-1024')) // stored before keys were checked
  await pki.changeLog.db.query(sql`update ca set cert_pem = ${weak.cert} where id = ${id}`)
  expect(await refusal(weak.certify(token))).toEqual(refused(/^RSA key/))
  expect(await get(id)).toMatchObject({ isVerified: false })
})

test('neither a patch nor a replace verifies, or changes the certificate', async () => {
  const { id } = await newCa()
  const before = await get(id)
  const body = {
    ...bodyOf(),
    certPem: ours.cert,
    isVerified: true,
    verificationToken: 'x',
    name: before.name,
  }
  await patch(id, body, ...Object.keys(body))
  expect(await get(id)).toEqual({ ...before, updatedAt: expect.any(String) })
})

test('an empty format is the default one', async () => {
  const { id } = await newCa({ identityNameFormat: '[commonName]' })
  expect(await get(id)).toMatchObject({ identityNameFormat: '[commonName]' })
  await patch(id, { identityNameFormat: '' }, 'identityNameFormat')
  expect(await get(id)).toMatchObject({ identityNameFormat: '[caName]-[commonName]' })
})

test('a patch keeps a claim that it does not name, and changes one of which it names a part', async () => {
  const { id } = await newCa({ externalIdClaim: wholeClaim })
  await patch(id, { name: `ca ${++count}` }, 'name')
  expect(await get(id)).toMatchObject({ externalIdClaim: wholeClaim })
  await patch(id, { externalIdClaim: { parserCriteria: ':' } }, 'externalIdClaim.parserCriteria')
  expect(await get(id)).toMatchObject({ externalIdClaim: { ...wholeClaim, parserCriteria: ':' } })
  const members = Object.keys(wholeClaim).map((member) => `externalIdClaim.${member}`)
  await patch(id, {}, ...members) // as a replace without it
  expect(await get(id)).not.toHaveProperty('externalIdClaim')
})

test.each([
  ['a part of one', { location: 'SAN_URI' }, 'externalIdClaim.matcher'],
  ['a prefix of nothing', { ...wholeClaim, matcherCriteria: '' }, 'externalIdClaim.matcherCriteria'],
  ['a split at nothing', { ...wholeClaim, parserCriteria: '' }, 'externalIdClaim.parserCriteria'],
  ['a prefix of a URI', { ...wholeClaim, location: 'SAN_URI' }, 'externalIdClaim.matcher'],
])('%s is no claim', async (_what, externalIdClaim, field) => {
  const fault = await faultOf(create(bodyOf({ certPem: newAuthority().cert, externalIdClaim })))
  expect(fault).toMatchObject(['COULD_NOT_VALIDATE', { field }])
})

const validMatchers: Readonly<Record<string, readonly string[]>> = {
  COMMON_NAME: ['ALL', 'PREFIX', 'SUFFIX'],
  SAN_EMAIL: ['ALL', 'PREFIX', 'SUFFIX'],
  SAN_URI: ['ALL', 'SCHEME'],
}
const combinations = Object.keys(validMatchers).flatMap((location) =>
  ['ALL', 'PREFIX', 'SUFFIX', 'SCHEME'].flatMap((matcher) =>
    ['', 'x'].flatMap((matcherCriteria) =>
      ['NONE', 'SPLIT'].flatMap((parser) =>
        ['', '.'].map((parserCriteria) => ({
          location,
          matcher,
          matcherCriteria,
          parser,
          parserCriteria,
          index: 0,
        })),
      ),
    ),
  ),
)

test('every combination of a claim is accepted or refused alike by create, replace and patch', async () => {
  const { id, authority } = await newCa({ externalIdClaim: wholeClaim })
  const members = Object.keys(wholeClaim).map((member) => `externalIdClaim.${member}`)
  for (const claim of combinations) {
    const { location, matcher, matcherCriteria, parser, parserCriteria } = claim
    const isValid =
      validMatchers[location]?.includes(matcher) &&
      (matcher === 'ALL' || matcherCriteria !== '') &&
      (parser === 'NONE' || parserCriteria !== '')
    const patched = patch(id, { externalIdClaim: claim }, ...members)
    const replaced = patch(id, { ...bodyOf(), externalIdClaim: claim }, 'name', ...members)
    const outcomes = (await Promise.allSettled([patched, replaced])).map(({ status }) => status)
    const expected = isValid ? 'fulfilled' : 'rejected'
    expect([claim, ...outcomes]).toEqual([claim, expected, expected])
    if (isValid) continue
    const [code, detail] = await faultOf(create(bodyOf({ certPem: authority.cert, externalIdClaim: claim })))
    const hasField = matcher !== 'SCHEME' || location === 'SAN_URI'
    expect(code).toBe(hasField ? 'COULD_NOT_VALIDATE' : 'REFERENCED_ENTITY_NOT_FOUND')
    if (hasField) expect(detail).toMatchObject({ field: expect.stringMatching(/^externalIdClaim\./) })
  }
})

test('a scheme for names other than URIs has its own code', async () => {
  const externalIdClaim = { ...wholeClaim, matcher: 'SCHEME' }
  const [code] = await faultOf(create(bodyOf({ certPem: newAuthority().cert, externalIdClaim })))
  expect(code).toBe('REFERENCED_ENTITY_NOT_FOUND')
})

test('the token of an authority names it and does not expire', async () => {
  const { id } = await newCa()
  const { jwt } = await pki.pki.getCaJwt({ kind, id }, context)
  const [, claims = ''] = jwt.split('.')
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toEqual({
    iss: 'https://api.example:1280/',
    sub: id,
    jti: id,
    em: 'ca',
    ctrls: null,
  })
  expect(await faultOf(pki.pki.getCaJwt({ kind, id: 'nothing' }, context))).toEqual(['NOT_FOUND'])
})

test('filters may name flags and token; followers and the audit do not get the token', async () => {
  const { id } = await newCa()
  const token = String((await get(id)).verificationToken)
  const query = { ...noQuery, filter: `verificationToken = "${token}" and not isVerified` }
  const page = await pki.entities.list({ kind, query, within: undefined, perspective: undefined }, context)
  expect(JSON.parse(Buffer.from(page.rows).toString())).toMatchObject([{ id }])
  const { rows } = await pki.changeLog.db.query(sql`
    select entity::text as text from change where entity_id = ${id}
     union all select after::text from audit where entity_id = ${id}`)
  expect(rows).toHaveLength(2)
  expect(JSON.stringify(rows)).not.toContain(token)
})

const ottca = (caId: string) => pki.wish({ method: 'ottca', caId })
const enrollCode = async (token: string, ...peerCertificates: Buffer[]) =>
  (await faultOf(pki.enroll({ token, peerCertificates })))[0]

test('a token for an authority accepts a certificate once the authority is verified and allows it', async () => {
  const ca = await newCa()
  const { id, token, identityId } = await ottca(ca.id)
  const leaf = derOf(ca.authority.certify('device'))
  expect(await enrollCode(token, leaf)).toBe('ENROLLMENT_CA_NOT_VALID')
  await verified(ca)
  await patch(ca.id, { isOttCaEnrollmentEnabled: false }, 'isOttCaEnrollmentEnabled')
  expect(await enrollCode(token, leaf)).toBe('ENROLLMENT_CA_NOT_VALID')
  await patch(ca.id, { isOttCaEnrollmentEnabled: true }, 'isOttCaEnrollmentEnabled')
  expect(await enrollCode(token)).toBe('CERT_FAILED_VALIDATION')

  expect((await pki.enroll({ token, peerCertificates: [leaf] })).method).toBe('ottca')
  expect(pki.added.filter(({ enrollmentId }) => enrollmentId === id)).toMatchObject([
    { identityId, caId: ca.id, certPem: '', peerCertificates: [leaf], isIssuedByNetwork: false },
  ])
  expect(await enrollCode(token, leaf)).toBe('INVALID_ENROLLMENT_TOKEN')
})

test('an operation for one method refuses tokens of another', async () => {
  const { token } = await pki.wish({})
  expect(await faultOf(pki.enroll({ method: 'updb', token, password: 'secret' }))).toEqual([
    'INVALID_ENROLLMENT_TOKEN',
  ])
  expect((await pki.enroll({ method: 'ott', token, csrPem: newCsr() })).method).toBe('ott')
})

test('an identity shows the authority of its token', async () => {
  const { id } = await newCa()
  const { identityId } = await ottca(id)
  const { json: views } = await pki.entities.view({ kind: 'identities', ids: [identityId] }, context)
  const { name } = await get(id)
  expect(JSON.parse(Buffer.from(views[0] ?? '').toString())).toMatchObject({
    enrollment: { ottca: { caId: id, ca: { entity: 'cas', id, name, _links: { jwt: {}, verify: {} } } } },
  })
})

test('an enrollment needs an existing authority', async () => {
  const { id } = await newCa()
  const wish = { ...(await ottca(id)), identityId: randomUUID() }
  expect(await pki.pki.checkEnrollment(wish, context)).toEqual({})
  for (const caId of ['nothing', ''])
    expect(await faultOf(pki.pki.checkEnrollment({ ...wish, caId }, context))).toEqual([
      'NOT_FOUND',
      { field: 'caId', reason: 'ca not found', value: caId },
    ])
})

test('deleting an authority ends its enrollments, prevents later ones, and waits for followers', async () => {
  const { id } = await newCa()
  const [outstanding, other] = [await ottca(id), await pki.wish({})]
  await pki.entities.delete({ kind, id }, context)
  expect(waitedFor).toContainEqual([id, ['identity']])
  const late = await ottca(id) // its wish is older than the end and arrives now
  const ids = (await pki.outstanding()).map((row) => row.id)
  expect([outstanding, late, other].map((wish) => ids.includes(wish.id))).toEqual([false, false, true])
  expect(await enrollCode(outstanding.token, derOf(ours.cert))).toBe('INVALID_ENROLLMENT_TOKEN')
})
