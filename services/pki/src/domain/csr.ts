import type { KeyObject } from 'node:crypto'
import {
  type Algorithm,
  algorithmIn,
  altNamesIn,
  bytesOfBits,
  checkName,
  commonNameOf,
  contentOf,
  DerError,
  derOf,
  type Element,
  extensionsIn,
  KeyError,
  objectIdIn,
  onlyElement,
  partsOf,
  signatureSchemeOf,
  soundKey,
  tag,
  verifyBytes,
} from '@overlay/x509'
import { CSR_CHARACTERS } from '../limits.js'

/** A certificate request whose signature is verified: its sender has the key. */
export interface Csr {
  /** DER of the Name. */
  readonly subject: Buffer
  /** The last common name, as in other implementations. Empty where there is none. */
  readonly commonName: string
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Buffer
  /** Names of the kinds that certificates of the network have. */
  readonly altNames: readonly Element[]
}

/** Why a request is refused. The message is for the sender. */
export class CsrError extends Error {
  override readonly name = 'CsrError'
}

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14'

/** Parses and verifies a request. Throws CsrError for any text that is not a valid one. */
export async function readCsr(pem: string): Promise<Csr> {
  const der = derOfPem(pem)
  const request = orRefuse('could not parse CSR', () => parse(der))
  const { subject, commonName, publicKey, attributes } = request
  if (!(await isSignedBy(keyOf(publicKey), request))) throw new CsrError('CSR signature validation failed')
  const altNames = orRefuse('could not parse the extensions of the CSR', () => altNamesOf(attributes))
  return { subject, commonName, publicKey, altNames }
}

/** The bytes of the only PEM block, with any label. Text before it is skipped, as in other implementations. */
function derOfPem(text: string): Buffer {
  if (text === '') throw new CsrError('csrPem must not be null or empty')
  if (text.length > CSR_CHARACTERS) throw new CsrError(`csrPem is longer than ${CSR_CHARACTERS} characters`)
  const [, label = '', rest = ''] = /-----BEGIN ([A-Z0-9 ]{1,40})-----[ \t]*\r?\n(.*)/s.exec(text) ?? []
  const end = `-----END ${label}-----`
  const at = rest.indexOf(end)
  const body = rest.slice(0, Math.max(at, 0)).replace(/\s/g, '')
  if (at < 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(body)) throw new CsrError('could not decode csrPem as PEM')
  if (rest.slice(at + end.length).trim() !== '') throw new CsrError('unexpected PEM blocks at end of CSR')
  return Buffer.from(body, 'base64')
}

function orRefuse<T>(message: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof DerError) throw new CsrError(message, { cause })
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
  const [version, subject, publicKey, attributes, ...moreInfo] = partsOf(info)
  contentOf(version, tag.integer)
  partsOf(publicKey)
  if (!info || !subject || !publicKey || more.length + moreInfo.length > 0)
    throw new DerError('too few parts, or too many')
  return {
    subject: derOf(subject),
    commonName: commonNameOf(derOf(subject)),
    publicKey: derOf(publicKey),
    signed: derOf(info),
    algorithm: algorithmIn(algorithm),
    signature: bytesOfBits(signature),
    attributes: attributes ? partsOf(attributes, 0xa0) : [], // some clients leave out the empty list
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

async function isSignedBy(key: KeyObject, { algorithm, signed, signature }: Request): Promise<boolean> {
  const scheme = orRefuse('could not parse signature parameters', () => signatureSchemeOf(algorithm))
  if (!scheme) throw new CsrError(`unsupported signature algorithm ${algorithm.id}`)
  const { digest, isPss } = scheme
  const padding = isPss
    ? { padding: 6 /* RSA_PKCS1_PSS_PADDING */, saltLength: -2 /* RSA_PSS_SALTLEN_AUTO */ }
    : {}
  return verifyBytes(digest, signed, { key, ...padding }, signature).catch((cause: unknown) => {
    throw new CsrError('CSR signature validation failed', { cause }) // the algorithm does not fit the key
  })
}

function altNamesOf(attributes: readonly Element[]): readonly Element[] {
  const requests = attributes.flatMap((attribute) => {
    const [type, values, ...more] = partsOf(attribute)
    if (more.length > 0) throw new DerError('an attribute is a type and a set of values')
    const set = partsOf(values, tag.set)
    return objectIdIn(type) === EXTENSION_REQUEST ? set : []
  })
  const [extensions, ...more] = requests
  if (more.length > 0) throw new DerError('more than one list of extensions')
  const names = extensions ? altNamesIn(extensionsIn(extensions)) : []
  for (const name of names) checkName(name)
  return names
}
