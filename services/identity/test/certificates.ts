import 'reflect-metadata'
import { X509Certificate as NodeCertificate, webcrypto } from 'node:crypto'
import {
  BasicConstraintsExtension,
  cryptoProvider,
  type Extension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

export {
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
} from '@peculiar/x509'

cryptoProvider.set(webcrypto)

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Keys and signatures of RSA, of any strength. */
export const rsa = (modulusLength: number, hash = 'SHA-256') => ({
  name: 'RSASSA-PKCS1-v1_5',
  modulusLength,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash,
})
const hour = 3_600_000

/** Somebody with a key and a certificate for it. */
export interface Holder {
  readonly certificate: NodeCertificate
  readonly keys: webcrypto.CryptoKeyPair
  readonly algorithm: typeof algorithm | ReturnType<typeof rsa>
}

export interface Profile {
  readonly name: string
  readonly issuer?: Holder // absent: signs itself
  readonly ca?: boolean
  readonly pathLength?: number
  readonly from?: Date
  readonly to?: Date
  readonly extensions?: readonly Extension[]
  readonly algorithm?: Holder['algorithm']
  /** Of a holder that has another certificate, too. */
  readonly keys?: webcrypto.CryptoKeyPair
  /** In place of its own, whoever has the private key. */
  readonly publicKey?: webcrypto.CryptoKey
  /** In place of a common name alone. */
  readonly subject?: string
}

/** A real certificate. Valid for an hour around now by default. */
export async function certify({
  name,
  issuer,
  ca = false,
  pathLength,
  from,
  to,
  extensions = [],
  algorithm: kind = algorithm,
  subject = `CN=${name}`,
  keys: existing,
  publicKey,
}: Profile): Promise<Holder> {
  const keys =
    existing ??
    ((await webcrypto.subtle.generateKey(kind, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair)
  const issued = await X509CertificateGenerator.create({
    subject,
    issuer: issuer ? new X509Certificate(issuer.certificate.raw).subjectName : subject,
    notBefore: from ?? new Date(Date.now() - hour),
    notAfter: to ?? new Date(Date.now() + hour),
    publicKey: publicKey ?? keys.publicKey,
    signingKey: (issuer ?? { keys }).keys.privateKey,
    signingAlgorithm: (issuer ?? { algorithm: kind }).algorithm,
    extensions: [...(ca ? [new BasicConstraintsExtension(true, pathLength, true)] : []), ...extensions],
  })
  return { certificate: new NodeCertificate(Buffer.from(issued.rawData)), keys, algorithm: kind }
}

export const authority = (name: string, issuer?: Holder, more: Partial<Profile> = {}): Promise<Holder> =>
  certify({ name, ca: true, ...(issuer && { issuer }), ...more })
