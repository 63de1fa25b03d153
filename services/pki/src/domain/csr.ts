import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { altNamesIn, checkName } from './alt-names.js'
import {
  bytesOfBits,
  contentOf,
  DerError,
  type Element,
  objectIdIn,
  onlyElement,
  partsOf,
  tag,
} from './der.js'
import { derOfPem } from './pem.js'
import { commonNameOf } from './subject.js'

/** A certificate request whose signature proves that its sender holds the key. */
export interface Csr {
  /** DER of the Name. */
  readonly subject: Buffer
  /** The last one, as others read it; empty when there is none. */
  readonly commonName: string
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Buffer
  /** Names of the kinds that certificates of the network carry. */
  readonly altNames: readonly Element[]
}

/** Why a request is refused; its message is for the sender. */
export class CsrError extends Error {
  override readonly name = 'CsrError'
}

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14'

/** Parses and verifies. Everything that is wrong with the text is a CsrError. */
export async function readCsr(pem: string): Promise<Csr> {
  const der = derOfPem(pem, 'csrPem', CsrError)
  const request = reading('could not parse CSR', () => parse(der))
  const { subject, commonName, publicKey, attributes } = request
  if (!(await isSignedBy(keyOf(publicKey), request))) throw new CsrError('CSR signature validation failed')
  const altNames = reading('could not parse the extensions of the CSR', () => altNamesOf(attributes))
  return { subject, commonName, publicKey, altNames }
}

function reading<T>(otherwise: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof DerError) throw new CsrError(otherwise, { cause })
    throw cause
  }
}

interface Request extends Omit<Csr, 'altNames'> {
  readonly signed: Buffer
  readonly algorithm: Algorithm
  readonly signature: Buffer
  readonly attributes: readonly Element[]
}

function parse(der: Buffer): Request {
  const [info, algorithm, signature, ...more] = partsOf(onlyElement(der))
  const [version, subject, publicKey, attributes, ...others] = partsOf(info)
  contentOf(version, tag.integer)
  contentOf(publicKey, tag.sequence)
  if (!info || !subject || !publicKey || more.length + others.length > 0)
    throw new DerError('too few parts, or too many')
  return {
    subject: subject.whole,
    commonName: commonNameOf(subject.whole),
    publicKey: publicKey.whole,
    signed: info.whole,
    algorithm: algorithmIn(algorithm),
    signature: bytesOfBits(signature),
    attributes: attributes ? partsOf(attributes, 0xa0) : [], // some leave out the empty list
  }
}

interface Algorithm {
  readonly id: string
  readonly parameters: Element | undefined
}

function algorithmIn(element: Element | undefined): Algorithm {
  const [id, parameters] = partsOf(element)
  return { id: objectIdIn(id), parameters }
}

function keyOf(publicKey: Buffer): KeyObject {
  const key = imported(publicKey)
  const { modulusLength = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  const isUsable = {
    rsa: modulusLength >= 2048 && modulusLength <= 4096,
    ec: ['prime256v1', 'secp384r1', 'secp521r1'].includes(namedCurve),
    ed25519: true,
  }[key.asymmetricKeyType as string]
  if (!isUsable)
    throw new CsrError('public key must be RSA of 2048 to 4096 bits, P-256, P-384, P-521 or Ed25519')
  return key
}

function imported(key: Buffer): KeyObject {
  try {
    const isUsual = key.length === usual.length + 64 && key.subarray(0, usual.length).equals(usual)
    return isUsual
      ? createPublicKey({ key: jwkOf(key.subarray(usual.length)), format: 'jwk' })
      : createPublicKey({ key, format: 'der', type: 'spki' })
  } catch (cause) {
    throw new CsrError('could not read the public key of the CSR', { cause })
  }
}

/**
 * P-256, with the point as it is: what nearly everybody sends. OpenSSL tries all its decoders on DER, and reads the
 * same key from its coordinates in a third of the time.
 */
const usual = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex')

const jwkOf = (point: Buffer): JsonWebKey => ({
  kty: 'EC',
  crv: 'P-256',
  x: point.toString('base64url', 0, 32),
  y: point.toString('base64url', 32),
})

/** Digest by signature algorithm: PKCS#1 v1.5, ECDSA. */
const digests: Readonly<Record<string, string>> = {
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
}
const pssDigests: Readonly<Record<string, string>> = {
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
}
const RSA_PSS = '1.2.840.113549.1.1.10'
const ED25519 = '1.3.101.112'

const verifyOnThread = promisify(verify)

async function isSignedBy(key: KeyObject, { algorithm, signed, signature }: Request): Promise<boolean> {
  const { id, parameters } = algorithm
  const isPss = id === RSA_PSS
  const digest = isPss ? pssDigestOf(parameters) : id === ED25519 ? null : digests[id]
  if (digest === undefined) throw new CsrError(`unsupported signature algorithm ${id}`)
  const padding = isPss ? { padding: 6 /* RSA_PKCS1_PSS_PADDING */, saltLength: -2 /* as found */ } : {}
  return verifyOnThread(digest, signed, { key, ...padding }, signature).catch((cause: unknown) => {
    throw new CsrError('CSR signature validation failed', { cause }) // key and algorithm do not fit
  })
}

function pssDigestOf(parameters: Element | undefined): string | undefined {
  return reading('could not parse signature parameters', () => {
    const hash = partsOf(parameters).find((part) => part.tag === 0xa0)
    const [algorithm] = hash ? partsOf(hash, 0xa0) : []
    return algorithm && pssDigests[algorithmIn(algorithm).id]
  })
}

function altNamesOf(attributes: readonly Element[]): readonly Element[] {
  const names = attributes.flatMap((attribute) => {
    const [type, values] = partsOf(attribute)
    if (objectIdIn(type) !== EXTENSION_REQUEST) return []
    const [extensions] = partsOf(values, tag.set)
    return extensions ? altNamesIn(extensions) : []
  })
  for (const name of names) checkName(name)
  return names
}
