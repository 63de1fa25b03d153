import { createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import type { Db } from '@overlay/platform/postgres'
import {
  type CertifiedKey,
  fingerprintOfPem,
  hostsOf,
  notAfterOf,
  openSigner,
  type Signer,
  trustDomainOf,
} from '@overlay/x509'
import { activeKey, type Key, type KeyRole, readKeys } from '../store/keys.js'

/** The keys of the network, decrypted, with what follows from them. */
export interface Keyring {
  readonly signer: Signer
  /** PEM of the authority that signs now. */
  readonly signing: string
  /** PEM of the certificates between a leaf and the root. */
  readonly intermediates: string
  /** What gateways serve. */
  readonly server: CertifiedKey & {
    readonly key: KeyObject
    /** How tokens name the certificate. */
    readonly keyId: string
    /** The names and addresses of its certificate. */
    readonly hosts: readonly string[]
  }
  /** PEM of every trusted authority. Retired ones stay until they expire. */
  readonly bundle: readonly string[]
  /** The bundle as one text. wire: an empty line before each block. */
  readonly caPem: string
  /** Changes when the bundle does. */
  readonly bundleId: string
  readonly trustDomain: string
  readonly expiry: Readonly<Record<KeyRole, Date>>
}

export async function readKeyring(db: Db, secret: string, now: Date): Promise<Keyring> {
  const keys = await readKeys(db, secret)
  const active = (role: KeyRole): Key => {
    const key = activeKey(keys, role)
    if (!key) throw new Error(`there is no active ${role} key: pki init has not run`)
    return key
  }
  const root = active('root')
  const signing = active('signing')
  const { privateKey, pem } = active('server')
  const bundle = keys
    .filter((key) => key.role !== 'server' && notAfterOf(key.pem) > now)
    .map((key) => key.pem)
  return {
    signer: openSigner(signing),
    signing: signing.pem,
    intermediates: signing.pem,
    server: {
      privateKey,
      pem,
      key: createPrivateKey(privateKey),
      keyId: fingerprintOfPem(pem),
      hosts: hostsOf(pem),
    },
    bundle,
    caPem: bundle.map((pem) => `\n${pem}`).join(''),
    bundleId: createHash('sha256').update(bundle.join('')).digest('hex'),
    trustDomain: trustDomainOf(root.pem),
    expiry: {
      root: notAfterOf(root.pem),
      signing: notAfterOf(signing.pem),
      server: notAfterOf(pem),
    },
  }
}
