import 'reflect-metadata'
import { X509Certificate as NodeCertificate, webcrypto } from 'node:crypto'
import {
  BasicConstraintsExtension,
  cryptoProvider,
  type Extension,
  X509CertificateGenerator,
} from '@peculiar/x509'

export { ExtendedKeyUsageExtension, SubjectAlternativeNameExtension } from '@peculiar/x509'

cryptoProvider.set(webcrypto)

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const hour = 3_600_000

/** Somebody with a key and a certificate for it. */
export interface Holder {
  readonly certificate: NodeCertificate
  readonly keys: webcrypto.CryptoKeyPair
}

export interface Profile {
  readonly name: string
  readonly issuer?: Holder // absent: signs itself
  readonly ca?: boolean
  readonly pathLength?: number
  readonly from?: Date
  readonly to?: Date
  readonly extensions?: readonly Extension[]
}

/** A real certificate. Valid for an hour around now unless told otherwise. */
export async function certify({
  name,
  issuer,
  ca = false,
  pathLength,
  from,
  to,
  extensions = [],
}: Profile): Promise<Holder> {
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair
  const made = await X509CertificateGenerator.create({
    subject: `CN=${name}`,
    issuer: issuer ? issuer.certificate.subject : `CN=${name}`,
    notBefore: from ?? new Date(Date.now() - hour),
    notAfter: to ?? new Date(Date.now() + hour),
    publicKey: keys.publicKey,
    signingKey: (issuer ?? { keys }).keys.privateKey,
    signingAlgorithm: algorithm,
    extensions: [...(ca ? [new BasicConstraintsExtension(true, pathLength, true)] : []), ...extensions],
  })
  return { certificate: new NodeCertificate(Buffer.from(made.rawData)), keys }
}

export const authority = (name: string, issuer?: Holder, more: Partial<Profile> = {}): Promise<Holder> =>
  certify({ name, ca: true, ...(issuer && { issuer }), ...more })
