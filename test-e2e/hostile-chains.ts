import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { derOf, encode, sequence } from '@overlay/x509'
import {
  BasicConstraintsExtension,
  Extension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import type { Certificate } from './client.js'

const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const rsa = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
}
type Kind = typeof p256 | typeof rsa
const hour = 3_600_000
const count = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

const newKeys = (kind: Kind = p256) =>
  webcrypto.subtle.generateKey(kind, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>

/** A key that nobody has the private half of: an attacker needs none to present it. */
async function longKey(bits: number, nth: number, e = 'AQAB'): Promise<webcrypto.CryptoKey> {
  const factors = count(5000).map((i) => BigInt(2 * i + 3))
  let modulus = (3n << BigInt(bits - 2)) + 1n + 100_000n * BigInt(nth)
  while (factors.some((factor) => modulus % factor === 0n)) modulus += 2n
  const n = Buffer.from(modulus.toString(16), 'hex').toString('base64url')
  return webcrypto.subtle.importKey('jwk', { kty: 'RSA', n, e }, rsa, true, ['verify'])
}

interface Issue {
  readonly subject: string
  readonly issuer?: string
  readonly publicKey: webcrypto.CryptoKey
  readonly signingKey: webcrypto.CryptoKey
  readonly kind?: Kind
  readonly isCa?: boolean
  readonly extensions?: readonly Extension[]
}

async function issue({
  subject,
  issuer,
  isCa = true,
  extensions = [],
  kind = p256,
  ...keys
}: Issue): Promise<string> {
  const certificate = await X509CertificateGenerator.create(
    {
      subject,
      issuer: issuer ?? subject,
      ...keys,
      signingAlgorithm: kind,
      notBefore: new Date(Date.now() - hour),
      notAfter: new Date(Date.now() + hour),
      extensions: [...(isCa ? [new BasicConstraintsExtension(true, undefined, true)] : []), ...extensions],
    },
    webcrypto,
  )
  return `${certificate.toString('pem')}\n`
}

const pkcs8 = async ({ privateKey }: webcrypto.CryptoKeyPair): Promise<string> =>
  PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY')

interface Below {
  /** Of the authorities. */
  readonly keys?: readonly webcrypto.CryptoKey[]
  readonly kind?: Kind
  readonly leaf?: readonly Extension[]
  readonly authority?: readonly Extension[]
}

/** A leaf below an authority of a stranger, and further authorities of the same name with these keys. */
async function below(
  subject: string,
  { keys = [], kind = p256, leaf = [], authority = [] }: Below = {},
): Promise<Certificate> {
  const [own, { publicKey, privateKey }] = [await newKeys(), await newKeys(kind)]
  const signed = { signingKey: privateKey, kind }
  const authorities = [publicKey, ...keys].map((key) =>
    issue({ subject, publicKey: key, extensions: authority, ...signed }),
  )
  const client = { subject: 'CN=client', issuer: subject, publicKey: own.publicKey, isCa: false }
  const chain = await Promise.all([issue({ ...client, extensions: leaf, ...signed }), ...authorities])
  return { key: await pkcs8(own), cert: chain.join('') }
}

async function circle(): Promise<Certificate> {
  const [own, one, other] = [await newKeys(), await newKeys(), await newKeys()]
  const [leaf, first, second] = await Promise.all([
    issue({
      subject: 'CN=client',
      issuer: 'CN=one',
      publicKey: own.publicKey,
      signingKey: one.privateKey,
      isCa: false,
    }),
    issue({ subject: 'CN=one', issuer: 'CN=other', publicKey: one.publicKey, signingKey: other.privateKey }),
    issue({ subject: 'CN=other', issuer: 'CN=one', publicKey: other.publicKey, signingKey: one.privateKey }),
  ])
  return { key: await pkcs8(own), cert: `${leaf}${first}${second}` }
}

const hosts = (n: number): readonly string[] => count(n).map((i) => `h${i}.example`)
const constraints = (n: number): Extension => {
  const bases = hosts(n).map((host) => sequence(encode(0x82, Buffer.from(host))))
  return new Extension('2.5.29.30', true, derOf(sequence(encode(0xa0, ...bases))))
}
const names = (n: number): Extension =>
  new SubjectAlternativeNameExtension(hosts(n).map((value) => ({ type: 'dns' as const, value })))

const keysOf = (n: number, bits: number, e?: string) => Promise.all(count(n).map((i) => longKey(bits, i, e)))
const EXPONENT_OF_64_BITS = Buffer.from('800000000000001d', 'hex').toString('base64url')

/** What strangers present to make others compute, by what it is. `authorities`: PEM of those of the network. */
export async function hostileChains(
  authorities: readonly string[],
): Promise<Readonly<Record<string, Certificate>>> {
  const [real = ''] = authorities.map((pem) => new X509Certificate(pem).subject).reverse()
  const [long, longest] = [await keysOf(6, 4096), await keysOf(6, 8192)]
  const longExponents = await keysOf(6, 8192, EXPONENT_OF_64_BITS)
  const short = await Promise.all(count(6).map(async () => (await newKeys()).publicKey))
  return {
    'a leaf of its own': await below('CN=x'),
    'authorities of one name with 4096 bits': await below('CN=x', { keys: long, kind: rsa }),
    'authorities of one name with 8192 bits': await below('CN=x', { keys: longest, kind: rsa }),
    'authorities with long exponents': await below('CN=x', { keys: longExponents, kind: rsa }),
    'the name of an authority of the network': await below(real, { keys: short }),
    'the name of an authority of the network, with 8192 bits': await below(real, { keys: longest }),
    'names in a circle': await circle(),
    'hundreds of constrained names': await below('CN=x', {
      leaf: [names(400)],
      authority: [constraints(400)],
    }),
  }
}

/** Chains that no handshake may have. */
export const excessiveChains = async (): Promise<Readonly<Record<string, Certificate>>> => ({
  'fifteen authorities with 4096 bits': await below('CN=x', { keys: await keysOf(14, 4096), kind: rsa }),
  'authorities with 16384 bits': await below('CN=x', { keys: await keysOf(3, 16_384), kind: rsa }),
})
