import { createPrivateKey, generateKeyPairSync, webcrypto, X509Certificate } from 'node:crypto'
import {
  derOf,
  type Element,
  encode,
  fingerprintOf,
  objectId,
  pathLengthOf,
  sequence,
  tag,
  text,
} from '@overlay/x509'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import {
  authority,
  certify,
  ExtendedKeyUsageExtension,
  Extension,
  type Holder,
  KeyUsageFlags,
  KeyUsagesExtension,
  type Profile,
  rsa,
  SubjectAlternativeNameExtension,
} from '../../test/certificates.js'
import { chainOf, hasBegun, isWithin } from './chain.js'
import { isSoundlySigned, linkOf } from './link-rules.js'

const hour = 3_600_000
const now = new Date()
const past = new Date(now.getTime() - hour)
const longPast = new Date(now.getTime() - 2 * hour)
const future = new Date(now.getTime() + hour)

let root: Holder
let signer: Holder
let leaf: Holder
beforeAll(async () => {
  root = await authority('root')
  signer = await authority('signer', root)
  leaf = await certify({ name: 'leaf', issuer: signer })
})

const lengthOf = (presented: readonly Holder[], trusted: readonly Holder[]): number | undefined =>
  chainOf(
    presented.map(({ certificate }) => certificate),
    trusted.map(({ certificate }) => certificate),
    now,
  )?.length

test('a leaf whose issuer is trusted has a chain, though the issuer is no root', () => {
  expect(lengthOf([leaf], [signer])).toBe(2)
})
test('what lies between comes from the client', () => {
  expect(lengthOf([leaf, signer], [root])).toBe(3)
  expect(lengthOf([leaf], [root])).toBeUndefined()
})
test('the order of what the client sends does not matter, beyond the leaf', async () => {
  const lower = await authority('lower', signer)
  const client = await certify({ name: 'client', issuer: lower })
  expect(lengthOf([client, signer, lower], [root])).toBe(4)
  expect(lengthOf([lower, client, signer], [root])).toBe(3)
})
test('an empty list has no chain', () => {
  expect(lengthOf([], [root])).toBeUndefined()
})
test('a foreign authority of the same name does not count', async () => {
  const foreign = await authority('signer')
  const stranger = await certify({ name: 'leaf', issuer: foreign })
  expect(lengthOf([stranger, foreign], [root, signer])).toBeUndefined()
})
test('a certificate that signed itself proves nothing', async () => {
  expect(lengthOf([await certify({ name: 'self' })], [root, signer])).toBeUndefined()
})
test('a certificate that is no authority certifies no other', async () => {
  const client = await certify({ name: 'client', issuer: leaf })
  expect(lengthOf([client, leaf, signer], [root])).toBeUndefined()
})
test('an authority certifies through as many others as it may, and no more', async () => {
  const strict = await authority('strict', undefined, { pathLength: 0 })
  const below = await authority('below', strict)
  expect(lengthOf([await certify({ name: 'direct', issuer: strict })], [strict])).toBe(2)
  expect(lengthOf([await certify({ name: 'indirect', issuer: below }), below], [strict])).toBeUndefined()
})
test('an expired leaf has a chain: the auth policy decides about it', async () => {
  const expired = await certify({ name: 'old', issuer: signer, from: longPast, to: past })
  expect(lengthOf([expired], [signer])).toBe(2)
  expect(isWithin(expired.certificate, now)).toBe(false)
  expect(hasBegun(expired.certificate, now)).toBe(true)
})
test('a leaf that is not valid yet has not begun', async () => {
  const early = await certify({ name: 'early', issuer: signer, from: future, to: new Date(+future + hour) })
  expect(hasBegun(early.certificate, now)).toBe(false)
})
test('an expired authority certifies no other', async () => {
  const expired = await authority('old signer', root, { from: longPast, to: past })
  expect(lengthOf([await certify({ name: 'client', issuer: expired }), expired], [root])).toBeUndefined()
})
test('a chain that is too long is none', async () => {
  const chain = [root]
  for (let depth = 0; depth < 8; depth++) chain.unshift(await authority(`level ${depth}`, chain[0]))
  const client = await certify({ name: 'client', ...(chain[0] && { issuer: chain[0] }) })
  expect(lengthOf([client, ...chain], [root])).toBeUndefined()
})
test('no signature is verified with the key of an authority that may not certify', async () => {
  const useless = Array.from({ length: 40 }, () => authority('signer', root, { extensions: [unknown(true)] }))
  expect(lengthOf([leaf], [...(await Promise.all(useless)), signer])).toBe(2)
})

/** What is used of all certificates: the keys, and the signatures that are verified. */
function watchUse() {
  const verify = vi.spyOn(X509Certificate.prototype, 'verify')
  const keys = vi.spyOn(X509Certificate.prototype, 'publicKey', 'get')
  return {
    signatures: () => verify.mock.calls.length,
    owners: () => keys.mock.contexts.map((owner) => (owner as X509Certificate).raw.toString('hex')),
  }
}
afterEach(() => vi.restoreAllMocks())
const hexOf = ({ certificate }: Holder): string => certificate.raw.toString('hex')

test('no signature is verified of a chain whose names lead to no trusted authority', async () => {
  const twins = await Promise.all(Array.from({ length: 15 }, () => authority('stranger')))
  const client = await certify({ name: 'client', ...(twins[0] && { issuer: twins[0] }) })
  const use = watchUse()
  expect(lengthOf([client, ...twins], [root, signer])).toBeUndefined()
  expect([use.signatures(), use.owners()]).toEqual([0, []])
})

test('under the name of a trusted authority, only its own key is used, for a limited number of signatures', async () => {
  const twins = await Promise.all(Array.from({ length: 15 }, () => authority('signer')))
  const client = await certify({ name: 'client', ...(twins[0] && { issuer: twins[0] }) })
  const renewed = await Promise.all(Array.from({ length: 5 }, () => authority('signer', root)))
  const trusted = [signer, ...renewed]
  const use = watchUse()
  expect(lengthOf([client, ...twins], trusted)).toBeUndefined()
  expect(use.signatures()).toBe(16)
  expect(trusted.map(hexOf)).toEqual(expect.arrayContaining([...new Set(use.owners())]))
})

test('authorities that name each other in a circle lead nowhere', async () => {
  const [one, other] = [await authority('one'), await authority('other')]
  const first = await certify({ name: 'one', ca: true, issuer: other, keys: one.keys })
  const second = await certify({ name: 'other', ca: true, issuer: one, keys: other.keys })
  const client = await certify({ name: 'client', issuer: one })
  expect(lengthOf([client, first, second], [root])).toBeUndefined()
})

test('the shortest way to a trusted authority is taken', () => {
  expect(lengthOf([leaf, signer], [root, signer])).toBe(2)
})

/** A modulus of unknown factors: only its length is wrong. */
async function rsaKeyOf(bits: number): Promise<webcrypto.CryptoKey> {
  const odd = Array.from({ length: 5000 }, (_, i) => BigInt(2 * i + 3))
  let modulus = (3n << BigInt(bits - 2)) + 1n
  while (odd.some((factor) => modulus % factor === 0n)) modulus += 2n
  const n = Buffer.from(modulus.toString(16), 'hex').toString('base64url')
  const kind = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  return webcrypto.subtle.importKey('jwk', { kty: 'RSA', n, e: 'AQAB' }, kind, true, ['verify'])
}

test('a key of more than 8192 bits is not used, even if a trusted authority has certified it', async () => {
  const { keys } = await certify({ name: 'client', algorithm: rsa(2048) })
  const uses = async (bits: number) => {
    const publicKey = await rsaKeyOf(bits)
    const between = await certify({ name: 'between', ca: true, issuer: root, publicKey })
    const client = await certify({ name: 'client', issuer: { ...between, keys, algorithm: rsa(2048) } })
    const use = watchUse()
    expect(lengthOf([client, between], [root])).toBeUndefined()
    const owners = use.owners()
    vi.restoreAllMocks()
    return owners.includes(hexOf(between))
  }
  expect(await uses(8192)).toBe(true)
  expect(await uses(8200)).toBe(false)
})

test('a path length is read from the certificate', async () => {
  const limited = await authority('limited', undefined, { pathLength: 3 })
  expect(pathLengthOf(linkOf(limited.certificate, false))).toBe(3)
  expect(pathLengthOf(linkOf(root.certificate, false))).toBeUndefined()
  expect(pathLengthOf(linkOf(leaf.certificate, true))).toBeUndefined()
})
test('a fingerprint is lower-case hex without colons', () => {
  expect(fingerprintOf(leaf.certificate)).toMatch(/^[0-9a-f]{40}$/)
})

const purpose = { client: '1.3.6.1.5.5.7.3.2', server: '1.3.6.1.5.5.7.3.1', mail: '1.3.6.1.5.5.7.3.4' }
const forPurpose = (...ids: string[]) => new ExtendedKeyUsageExtension(ids, true)
const unknown = (critical: boolean) => new Extension('1.2.3.4.5.6', critical, Buffer.from('0500', 'hex'))
const policyConstraints = new Extension('2.5.29.36', true, Buffer.from('3003800100', 'hex'))
const { digitalSignature, keyEncipherment, keyCertSign } = KeyUsageFlags

/** Whether a leaf below an authority below the root is trusted. */
async function isTrusted(above: Partial<Profile>, below: Partial<Profile> = {}): Promise<boolean> {
  const between = await authority('between', root, above)
  const client = await certify({ name: 'client', issuer: between, ...below })
  return lengthOf([client, between], [root]) === 3
}

test.each<[string, boolean, Partial<Profile>, Partial<Profile>]>([
  ['an unknown extension that is not critical', true, { extensions: [unknown(false)] }, {}],
  ['an unknown critical extension of an authority', false, { extensions: [unknown(true)] }, {}],
  ['an unknown critical extension of a leaf', false, {}, { extensions: [unknown(true)] }],
  ['a critical extension that no rule checks', false, { extensions: [policyConstraints] }, {}],
  ['an authority for clients', true, { extensions: [forPurpose(purpose.client, purpose.mail)] }, {}],
  ['an authority for any purpose', true, { extensions: [forPurpose('2.5.29.37.0')] }, {}],
  ['an authority for mail only', false, { extensions: [forPurpose(purpose.mail)] }, {}],
  ['a leaf for servers only', false, {}, { extensions: [forPurpose(purpose.server)] }],
  [
    'an authority that signs certificates',
    true,
    { extensions: [new KeyUsagesExtension(keyCertSign, true)] },
    {},
  ],
  [
    'an authority that only signs data',
    false,
    { extensions: [new KeyUsagesExtension(digitalSignature, true)] },
    {},
  ],
  ['a leaf that signs', true, {}, { extensions: [new KeyUsagesExtension(digitalSignature, true)] }],
  [
    'a leaf that only enciphers keys',
    false,
    {},
    { extensions: [new KeyUsagesExtension(keyEncipherment, true)] },
  ],
  ['RSA of 2048 bits throughout', true, { algorithm: rsa(2048) }, { algorithm: rsa(2048) }],
  ['an RSA authority of 1024 bits', false, { algorithm: rsa(1024) }, {}],
  ['an RSA leaf of 1024 bits', false, {}, { algorithm: rsa(1024) }],
  ['an authority that signs with SHA-1', false, { algorithm: rsa(2048, 'SHA-1') }, {}],
  ['the same extension twice', false, {}, { extensions: [unknown(false), unknown(false)] }],
])('a chain with %s: trusted %s', async (_what, trusted, above, below) => {
  expect(await isTrusted(above, below)).toBe(trusted)
})

test.each([
  ['MD5', '1.2.840.113549.1.1.4', false],
  ['SHA-1', '1.2.840.113549.1.1.5', false],
  ['ECDSA with SHA-1', '1.2.840.10045.4.1', false],
  ['RSA-PSS with its default, SHA-1', '1.2.840.113549.1.1.10', false],
  ['SHA-256', '1.2.840.113549.1.1.11', true],
])('a signature with %s is sound: %s', (_what, id, sound) => {
  expect(
    isSoundlySigned({ ...linkOf(leaf.certificate, true), signature: { id, parameters: undefined } }),
  ).toBe(sound)
})

const base = (kind: number, content: string | Buffer): Element => sequence(encode(kind, Buffer.from(content)))
const constrained = (list: number, ...bases: Element[]) => ({
  extensions: [new Extension('2.5.29.30', true, derOf(sequence(encode(list, ...bases))))],
})
const permitted = (...bases: Element[]) => constrained(0xa0, ...bases)
const excluded = (...bases: Element[]) => constrained(0xa1, ...bases)
const organization = (name: string): Element =>
  encode(tag.set, sequence(objectId('2.5.4.10'), text(name, tag.utf8String)))
const directory = (name: string): Element => sequence(encode(0xa4, sequence(organization(name))))
const [mail, dns, uri, ip] = [0x81, 0x82, 0x86, 0x87]
type Name = ConstructorParameters<typeof SubjectAlternativeNameExtension>[0]
const named = (type: 'dns' | 'email' | 'url' | 'ip', value: string) => ({
  extensions: [new SubjectAlternativeNameExtension([{ type, value }] as Name)],
})
const inTwoBytes = (type: string, value: string) => {
  const content = Buffer.from(value, 'utf16le').swap16()
  const der = Buffer.concat([Buffer.of(tag.bmpString, content.length), content])
  return { subject: `${type}=#${der.toString('hex')}` }
}
const subnet = Buffer.from([10, 0, 0, 0, 255, 0, 0, 0])

test.each<[string, boolean, Partial<Profile>, Partial<Profile>]>([
  ['a host within', true, permitted(base(dns, 'only.example')), named('dns', 'a.only.example')],
  ['a host in capitals', true, permitted(base(dns, 'only.example')), named('dns', 'A.ONLY.example')],
  ['a host outside', false, permitted(base(dns, 'only.example')), named('dns', 'other.example')],
  ['a host that only ends alike', false, permitted(base(dns, 'only.example')), named('dns', 'xonly.example')],
  ['an excluded host', false, excluded(base(dns, 'bad.example')), named('dns', 'x.bad.example')],
  ['a wildcard over an excluded host', false, excluded(base(dns, 'bad.example')), named('dns', '*.example')],
  ['a host as common name outside', false, permitted(base(dns, 'only.example')), { name: 'other.example' }],
  [
    'a host in two bytes a character outside',
    false,
    permitted(base(dns, 'only.example')),
    inTwoBytes('CN', 'other.example'),
  ],
  ['no name of the kind', true, permitted(base(dns, 'only.example')), { name: 'robot' }],
  ['an address within', true, permitted(base(ip, subnet)), named('ip', '10.1.2.3')],
  ['an address outside', false, permitted(base(ip, subnet)), named('ip', '11.1.2.3')],
  ['an excluded address', false, excluded(base(ip, subnet)), named('ip', '10.1.2.3')],
  ['an address of the other family', false, permitted(base(ip, subnet)), named('ip', '2001:db8::1')],
  ['a mailbox within', true, permitted(base(mail, 'only.example')), named('email', 'a@only.example')],
  ['a mailbox outside', false, permitted(base(mail, 'only.example')), named('email', 'a@x.only.example')],
  ['another mailbox', false, permitted(base(mail, 'b@only.example')), named('email', 'a@only.example')],
  ['a URI within', true, permitted(base(uri, '.example')), named('url', 'spiffe://only.example/a')],
  ['a URI outside', false, permitted(base(uri, 'only.example')), named('url', 'spiffe://other.example/a')],
  ['a URI without a host', false, permitted(base(uri, 'only.example')), named('url', 'urn:only.example')],
  ['a subject within', true, permitted(directory('Only Org')), { subject: 'O=only  org, CN=x' }],
  ['a subject outside', false, permitted(directory('Only Org')), { subject: 'O=Other Org, CN=x' }],
  [
    'an excluded subject in two bytes a character',
    false,
    excluded(directory('Bad Org')),
    inTwoBytes('O', 'Bad Org'),
  ],
  ['a constraint of an unknown kind', false, permitted(base(0x88, Buffer.from([0x2a]))), {}],
  ['a constraint that is not one', false, permitted(encode(tag.null)), {}],
])('under constraints of names, with %s: trusted %s', async (_what, trusted, above, below) => {
  expect(await isTrusted(above, below)).toBe(trusted)
})

test('constraints hold for all certificates below, not only for the next', async () => {
  const strict = await authority('strict', root, permitted(base(dns, 'only.example')))
  const below = await authority('below', strict)
  const good = await certify({ name: 'good', issuer: below, ...named('dns', 'a.only.example') })
  const bad = await certify({ name: 'bad', issuer: below, ...named('dns', 'other.example') })
  expect(lengthOf([good, below, strict], [root])).toBe(4)
  expect(lengthOf([bad, below, strict], [root])).toBeUndefined()
})

test('a chain that needs too many name comparisons is refused, even if a trusted authority signed it', async () => {
  const many = (count: number) => Array.from({ length: count }, () => 'only.example')
  const strict = await authority('strict', root, permitted(...many(400).map((host) => base(dns, host))))
  const leafOf = (count: number) =>
    certify({
      name: 'client',
      issuer: strict,
      extensions: [
        new SubjectAlternativeNameExtension(many(count).map((value) => ({ type: 'dns', value })) as Name),
      ],
    })
  expect(lengthOf([await leafOf(10), strict], [root])).toBe(3)
  expect(lengthOf([await leafOf(400), strict], [root])).toBeUndefined()
})

test('a leaf with unreadable parameters of its signature algorithm has no chain', async () => {
  const { certificate } = await certify({ name: 'client', algorithm: rsa(2048) })
  const [pkcs1, pss] = ['1.2.840.113549.1.1.11', '1.2.840.113549.1.1.10'].map((id) =>
    derOf(objectId(id)).toString('hex'),
  )
  const der = certificate.raw.toString('hex').replaceAll(String(pkcs1), String(pss))
  const altered = new X509Certificate(Buffer.from(der, 'hex'))
  expect(chainOf([altered], [root.certificate], now)).toBeUndefined()
})

test('another way to the trusted authority is tried where one breaks a rule', async () => {
  const keyHolder = await authority('twin', root, { extensions: [forPurpose(purpose.mail)] })
  const twin = await certify({ name: 'twin', ca: true, issuer: root, keys: keyHolder.keys })
  const client = await certify({ name: 'client', issuer: twin })
  expect(lengthOf([client, keyHolder, twin], [root])).toBe(3)
})

test('an authority that has a longer key than the one that signed leaves no error of OpenSSL', async () => {
  const former = await authority('factory', undefined, { algorithm: rsa(2048) })
  const renewed = await authority('factory', undefined, { algorithm: rsa(3072) })
  const client = await certify({ name: 'client', issuer: former })
  expect(lengthOf([client], [renewed])).toBeUndefined()
  expect(lengthOf([client], [renewed, former])).toBe(2)
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  expect(() => createPrivateKey(pem)).not.toThrow() // would fail with the error of another call
})
