import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { expect, test } from 'vitest'
import { bits, derOf, encode, objectId, sequence, tag } from './der.js'
import { isSameKey, soundKey } from './keys.js'
import { LONGEST_AUTHORITY_KEY } from './limits.js'
import { verifyBytes } from './sign-bytes.js'

type Curve = 'P-256' | 'P-384' | 'P-521' | 'P-224' | 'secp256k1'

const spki = { type: 'spki', format: 'der' } as const
const ecKey = (namedCurve: Curve, more: object = {}): Buffer =>
  generateKeyPairSync('ec', { namedCurve, ...more }).publicKey.export(spki)

const base64url = (value: bigint): string => {
  const hex = value.toString(16)
  return Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex').toString('base64url')
}
/** A key of these numbers: what would be needed to use it is of no interest here. */
const rsaKey = (n: bigint, e = 65_537n): Buffer =>
  createPublicKey({ key: { kty: 'RSA', n: base64url(n), e: base64url(e) }, format: 'jwk' }).export(spki)

const real = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
const modulus = BigInt(`0x${Buffer.from(String(real.n), 'base64url').toString('hex')}`)

/** The next number from here on that passes Fermat's test for a few bases. */
function primeFrom(start: bigint): bigint {
  for (let candidate = start | 1n; ; candidate += 2n)
    if (
      [3n, 5n, 7n].every((prime) => candidate % prime !== 0n) &&
      powerOf(2n, candidate - 1n, candidate) === 1n
    )
      return candidate
}
function powerOf(base: bigint, exponent: bigint, modulo: bigint): bigint {
  let [result, factor] = [1n, base % modulo]
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * factor) % modulo
    factor = (factor * factor) % modulo
  }
  return result
}

const printed = Array.from({ length: 168 }, (_, i) => BigInt(i)).filter(
  (n) => n > 1n && !Array.from({ length: Number(n) - 2 }, (_, i) => BigInt(i) + 2n).some((d) => n % d === 0n),
)
const primorial = printed.reduce((product, prime) => product * prime, 1n)
/** As the defective generator makes them: a multiple of the primorial, and a power of 65537. */
const defectiveModulus = withoutSmallFactor(
  ((1n << 2047n) / primorial + 1n) * primorial + powerOf(65_537n, 12_345n, primorial),
)
function withoutSmallFactor(start: bigint): bigint {
  for (let candidate = start; ; candidate += primorial)
    if (!Array.from({ length: 10_000 }, (_, i) => BigInt(i) + 2n).some((d) => candidate % d === 0n))
      return candidate
}

test.each(['P-256', 'P-384', 'P-521'] as const)('a key on %s is sound', (curve) => {
  expect(soundKey(ecKey(curve)).asymmetricKeyType).toBe('ec')
})

test('RSA keys of 2048 bits and Ed25519 keys are sound', () => {
  expect(soundKey(rsaKey(modulus)).asymmetricKeyType).toBe('rsa')
  const { publicKey } = generateKeyPairSync('ed25519')
  expect(soundKey(publicKey.export(spki)).asymmetricKeyType).toBe('ed25519')
})

const close = primeFrom(1n << 1024n)
const offCurve = Buffer.concat([ecKey('P-256').subarray(0, -1), Buffer.of(0)])
const compressed = derOf(
  sequence(
    sequence(objectId('1.2.840.10045.2.1'), objectId('1.2.840.10045.3.1.7')),
    bits(Buffer.concat([Buffer.of(2), Buffer.alloc(32, 1)])),
  ),
)

test.each<[string, Buffer, RegExp]>([
  ['RSA of 1024 bits', generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export(spki), /2048/],
  ['RSA of 8193 bits', rsaKey((1n << 8192n) + 1n), /8192 bits/],
  ['an exponent of 1', rsaKey(modulus, 1n), /exponent/],
  ['an exponent of 3', rsaKey(modulus, 3n), /exponent/],
  ['an even exponent', rsaKey(modulus, 65_538n), /exponent/],
  ['an exponent that costs seconds', rsaKey(modulus, (1n << 1024n) + 1n), /exponent/],
  ['an even modulus', rsaKey(modulus + 1n), /small factor/],
  ['a modulus with a small factor', rsaKey(primeFrom(1n << 2040n) * 7919n), /small factor/],
  ['a modulus of two primes next to each other', rsaKey(close * primeFrom(close + 2n)), /close/],
  ['a modulus that is a square', rsaKey(close * close), /close/],
  ['a modulus of the ROCA kind', rsaKey(defectiveModulus), /CVE-2017-15361/],
  ['P-224', ecKey('P-224'), /P-256/],
  ['secp256k1', ecKey('secp256k1'), /P-256/],
  ['a curve that is described', ecKey('P-256', { paramEncoding: 'explicit' }), /P-256/],
  ['a point that is compressed', compressed, /uncompressed/],
  ['a point that is not on its curve', offCurve, /could not read/],
  ['X25519', generateKeyPairSync('x25519').publicKey.export(spki), /Ed25519/],
  ['RSA-PSS', generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).publicKey.export(spki), /Ed25519/],
  ['no key', derOf(encode(tag.octetString)), /could not read/],
])('a key is refused that is %s', (_what, key, reason) => {
  expect(() => soundKey(key)).toThrow(reason)
})

test('RSA keys of authorities may have 16384 bits', () => {
  const authority = (bits: bigint) => soundKey(rsaKey((1n << bits) + 1n), LONGEST_AUTHORITY_KEY)
  expect(() => authority(16_383n)).toThrow(/small factor/) // 2^16383 + 1 is a multiple of 3: its size is accepted
  expect(() => authority(16_384n)).toThrow(/16384 bits/)
  expect(isQueueEmpty()).toBe(true)
})

test('a comparison of keys of different kinds leaves no error for the next key that is decoded', () => {
  const [rsa, ec] = [
    generateKeyPairSync('rsa', { modulusLength: 2048 }),
    generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ]
  const pem = ec.privateKey.export({ type: 'pkcs8', format: 'pem' })
  expect(isSameKey(rsa.publicKey, ec.publicKey)).toBe(false)
  expect(isSameKey(ec.publicKey, createPublicKey(createPrivateKey(pem)))).toBe(true)
})

/** Whether OpenSSL's queue of errors is empty: the next key that is decoded, and the next read of TLS, would fail. */
function isQueueEmpty(): boolean {
  const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  })
  try {
    createPrivateKey(pem)
    return true
  } catch {
    return false
  }
}
const key = (bits: number): KeyObject => generateKeyPairSync('rsa', { modulusLength: bits }).publicKey
const curveKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey

test.each<[string, KeyObject, number]>([
  ['of another length than the key', key(2048), 384],
  ['of the length of the key', key(2048), 256],
  ['that is not DER', curveKey, 70],
])('a wrong signature %s leaves no error of OpenSSL', async (_what, verifier, length) => {
  expect(await verifyBytes('sha256', Buffer.from('x'), { key: verifier }, Buffer.alloc(length, 0x5a))).toBe(
    false,
  )
  expect(isQueueEmpty()).toBe(true)
})
