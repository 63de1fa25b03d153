import { type KeyObject, verify } from 'node:crypto'
import { promisify } from 'node:util'
import {
  type Algorithm,
  algorithmIn,
  bytesOfBits,
  contentOf,
  DerError,
  type Element,
  extensionsIn,
  KeyError,
  objectIdIn,
  onlyElement,
  partsOf,
  signatureSchemeOf,
  soundKey,
  tag,
} from '@overlay/x509'
import { altNamesIn, checkName } from './alt-names.js'
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

function keyOf(publicKey: Buffer): KeyObject {
  try {
    return soundKey(publicKey)
  } catch (cause) {
    if (!(cause instanceof KeyError)) throw cause
    throw new CsrError(cause.message, { cause })
  }
}

const verifyOnThread = promisify(verify)

async function isSignedBy(key: KeyObject, { algorithm, signed, signature }: Request): Promise<boolean> {
  const scheme = reading('could not parse signature parameters', () => signatureSchemeOf(algorithm))
  if (!scheme) throw new CsrError(`unsupported signature algorithm ${algorithm.id}`)
  const { digest, isPss } = scheme
  const padding = isPss ? { padding: 6 /* RSA_PKCS1_PSS_PADDING */, saltLength: -2 /* as found */ } : {}
  return verifyOnThread(digest, signed, { key, ...padding }, signature).catch((cause: unknown) => {
    throw new CsrError('CSR signature validation failed', { cause }) // key and algorithm do not fit
  })
}

function altNamesOf(attributes: readonly Element[]): readonly Element[] {
  const names = attributes.flatMap((attribute) => {
    const [type, values] = partsOf(attribute)
    if (objectIdIn(type) !== EXTENSION_REQUEST) return []
    const [extensions] = partsOf(values, tag.set)
    return extensions ? altNamesIn(extensionsIn(extensions)) : []
  })
  for (const name of names) checkName(name)
  return names
}
