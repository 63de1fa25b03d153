import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { CertificationRequest } from '@peculiar/asn1-csr'
import { id_RSASSA_PSS, RsaSaPssParams } from '@peculiar/asn1-rsa'
import { AsnConvert } from '@peculiar/asn1-schema'
import { Extensions, type GeneralName, type Name } from '@peculiar/asn1-x509'
import { altNamesIn } from './alt-names.js'
import { derOfPem } from './pem.js'
import { commonNameOf } from './subject.js'

/** A certificate request whose signature proves that its sender holds the key. */
export interface Csr {
  readonly subject: Name
  /** The last one, as others read it; empty when there is none. */
  readonly commonName: string
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Buffer
  /** Names of the kinds that certificates of the network carry. */
  readonly altNames: readonly GeneralName[]
}

/** Why a request is refused; its message is for the sender. */
export class CsrError extends Error {
  override readonly name = 'CsrError'
}

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14'

/** Parses and verifies. Everything that is wrong with the text is a CsrError. */
export async function readCsr(pem: string): Promise<Csr> {
  const der = derOfPem(pem, 'csrPem', CsrError)
  const request = parse(der)
  const key = publicKeyOf(request)
  if (!(await isSignedBy(key, request))) throw new CsrError('CSR signature validation failed')
  const { subject } = request.certificationRequestInfo
  return {
    subject,
    commonName: commonNameOf(subject),
    publicKey: key.export({ type: 'spki', format: 'der' }),
    altNames: altNamesOf(request),
  }
}

function parse(der: Buffer): CertificationRequest {
  if (lengthOf(der) !== der.length) throw new CsrError('could not parse CSR')
  try {
    return AsnConvert.parse(der, CertificationRequest)
  } catch (cause) {
    throw new CsrError('could not parse CSR', { cause })
  }
}

/** Of the outermost element: the parser reads it and overlooks what follows. */
function lengthOf(der: Buffer): number {
  const first = der[1] ?? 0
  const more = first & 0x7f
  if (first < 0x80) return 2 + first
  return more >= 1 && more <= 4 && der.length >= 2 + more ? 2 + more + der.readUIntBE(2, more) : -1
}

function publicKeyOf({ certificationRequestInfo: { subjectPKInfo } }: CertificationRequest): KeyObject {
  const key = imported(Buffer.from(AsnConvert.serialize(subjectPKInfo)))
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
    return createPublicKey({ key, format: 'der', type: 'spki' })
  } catch (cause) {
    throw new CsrError('could not read the public key of the CSR', { cause })
  }
}

const verifyAsync = promisify(verify)

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
const ED25519 = '1.3.101.112'

async function isSignedBy(key: KeyObject, request: CertificationRequest): Promise<boolean> {
  const { algorithm, parameters } = request.signatureAlgorithm
  const isPss = algorithm === id_RSASSA_PSS
  const digest = isPss ? pssDigestOf(parameters) : algorithm === ED25519 ? null : digests[algorithm]
  if (digest === undefined) throw new CsrError(`unsupported signature algorithm ${algorithm}`)
  const { certificationRequestInfoRaw: signed } = request
  if (!signed) throw new Error('parser kept no signed bytes')
  const padding = isPss ? { padding: 6 /* RSA_PKCS1_PSS_PADDING */, saltLength: -2 /* as found */ } : {}
  return verifyAsync(digest, Buffer.from(signed), { key, ...padding }, Buffer.from(request.signature)).catch(
    (cause: unknown) => {
      throw new CsrError('CSR signature validation failed', { cause }) // key and algorithm do not fit
    },
  )
}

function pssDigestOf(parameters: ArrayBuffer | null | undefined): string | undefined {
  if (!parameters) return undefined
  try {
    return pssDigests[AsnConvert.parse(parameters, RsaSaPssParams).hashAlgorithm.algorithm]
  } catch (cause) {
    throw new CsrError('could not parse signature parameters', { cause })
  }
}

function altNamesOf(request: CertificationRequest): GeneralName[] {
  const attributes = request.certificationRequestInfo.attributes ?? []
  try {
    return attributes
      .filter(({ type }) => type === EXTENSION_REQUEST)
      .flatMap(({ values: [value] }) => (value ? altNamesIn(AsnConvert.parse(value, Extensions)) : []))
  } catch (cause) {
    throw new CsrError('could not parse the extensions of the CSR', { cause })
  }
}
