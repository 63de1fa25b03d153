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
import type { PeerName } from '../src/peer-name.js'
import { contextOptionsOf, type PeerTls } from '../src/peer-tls.js'

/** The contents of `tls.crt`, `tls.key` and `ca.crt`. */
export interface TlsFiles {
  readonly certificate: string
  readonly key: string
  readonly authority: string
}

interface CertificateOptions {
  readonly from?: Date
  readonly to?: Date
  /** Object ids. Absent: server auth and client auth. */
  readonly purposes?: readonly string[]
}

/** An internal authority for tests. */
export interface TestAuthority {
  readonly pem: string
  /** Issues a certificate with these DNS names. */
  issue(names: readonly string[], options?: CertificateOptions): Promise<TlsFiles>
  /** An authority below this one, whose certificates come with its own. */
  below(): Promise<TestAuthority>
}

interface Holder {
  readonly subject: string
  readonly keys: webcrypto.CryptoKeyPair
}

const HOUR_MS = 3_600_000
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const bothPurposes = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']
const isAuthority = new BasicConstraintsExtension(true, undefined, true)

const newHolder = async (name: string): Promise<Holder> => ({
  subject: `CN=${name} ${webcrypto.randomUUID()}`,
  keys: (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair,
})

export async function newAuthority(): Promise<TestAuthority> {
  const holder = await newHolder('internal authority')
  const pem = await certify(holder, holder, [isAuthority])
  return authorityOf(holder, pem, '')
}

const authorityOf = (holder: Holder, anchor: string, chain: string): TestAuthority => ({
  pem: anchor,
  async issue(names, options = {}) {
    const process = await newHolder('process')
    const altNames = new SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns', value })))
    const purposes = new ExtendedKeyUsageExtension([...(options.purposes ?? bothPurposes)])
    const leaf = await certify(holder, process, [altNames, purposes], options)
    return { certificate: leaf + chain, key: await keyOf(process), authority: anchor }
  },
  async below() {
    const lower = await newHolder('intermediate authority')
    return authorityOf(lower, anchor, (await certify(holder, lower, [isAuthority])) + chain)
  },
})

async function certify(
  issuer: Holder,
  { subject, keys }: Holder,
  extensions: Extension[],
  { from = new Date(Date.now() - HOUR_MS), to = new Date(Date.now() + HOUR_MS) }: CertificateOptions = {},
): Promise<string> {
  const certificate = await X509CertificateGenerator.create(
    {
      subject,
      issuer: issuer.subject,
      publicKey: keys.publicKey,
      signingKey: issuer.keys.privateKey,
      signingAlgorithm: algorithm,
      notBefore: from,
      notAfter: to,
      extensions,
    },
    webcrypto,
  )
  return `${certificate.toString('pem')}\n`
}

const keyOf = async ({ keys }: Holder): Promise<string> =>
  `${PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')}\n`

/** The authority of this test process. */
export const authority = await newAuthority()

/** A peer of this name. */
export async function testTls(name: PeerName, issuer = authority): Promise<PeerTls> {
  const { certificate, key, authority } = await issuer.issue([name])
  return {
    name,
    contextOptions: () => contextOptionsOf({ certificates: certificate, key, authorities: authority }),
    onChange: () => () => undefined,
    [Symbol.dispose]: () => undefined,
  }
}
