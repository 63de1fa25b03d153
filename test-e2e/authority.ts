import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  type Extension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'
import type { Certificate } from './client.js'

/** The authority of a third party. */
export interface Authority extends Certificate {
  /** A key and its certificate, with an optional extended key usage and further names. */
  certify(
    commonName: string,
    more?: {
      readonly purpose?: string
      readonly uri?: string
      readonly email?: string
      readonly dns?: string
    },
  ): Promise<Certificate>
  /** An authority below this one. Its chains include its own certificate. */
  below(commonName: string): Promise<Authority>
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const hour = 3_600_000

interface Holder {
  readonly subject: string
  readonly keys: webcrypto.CryptoKeyPair
}

export const clientAuth = '1.3.6.1.5.5.7.3.2'

export const newAuthority = async (commonName: string): Promise<Authority> => {
  const subject = `CN=${commonName}`
  const keys = await newKeys()
  return openAuthority({ subject, keys }, await issue({ subject, keys }, subject, keys, isCa), '')
}

const isCa = [new BasicConstraintsExtension(true, undefined, true)]
const newKeys = () =>
  webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>

async function issue(
  issuer: Holder,
  subject: string,
  { publicKey }: webcrypto.CryptoKeyPair,
  extensions: readonly Extension[],
): Promise<string> {
  const certificate = await X509CertificateGenerator.create(
    {
      subject,
      issuer: issuer.subject,
      publicKey,
      signingKey: issuer.keys.privateKey,
      signingAlgorithm: algorithm,
      notBefore: new Date(Date.now() - hour),
      notAfter: new Date(Date.now() + hour),
      extensions: [...extensions],
    },
    webcrypto,
  )
  return `${certificate.toString('pem')}\n`
}

async function openAuthority(holder: Holder, cert: string, above: string): Promise<Authority> {
  const key = await pemOf(holder)
  return {
    key,
    cert,
    async certify(commonName, { purpose, uri, email, dns } = {}) {
      const subject = `CN=${commonName}`
      const keys = await newKeys()
      const names = [
        ...(uri ? [{ type: 'url' as const, value: uri }] : []),
        ...(email ? [{ type: 'email' as const, value: email }] : []),
        ...(dns ? [{ type: 'dns' as const, value: dns }] : []),
      ]
      const leaf = await issue(holder, subject, keys, [
        ...(purpose ? [new ExtendedKeyUsageExtension([purpose])] : []),
        ...(names.length > 0 ? [new SubjectAlternativeNameExtension(names)] : []),
      ])
      return { key: await pemOf({ subject, keys }), cert: leaf + above }
    },
    async below(commonName) {
      const next = { subject: `CN=${commonName}`, keys: await newKeys() }
      const own = await issue(holder, next.subject, next.keys, isCa)
      return openAuthority(next, own, own + above)
    },
  }
}

const pemOf = async ({ keys }: Holder): Promise<string> =>
  PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
