import { createHash, createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { SESSION_TOKEN_ALGORITHM, TOKEN_ALGORITHM } from '@overlay/process/tokens'
import type { Db } from '@overlay/store/postgres'
import {
  type CertifiedKey,
  fingerprintOfPem,
  hostsOf,
  notAfterOf,
  openSigner,
  type Signer,
} from '@overlay/x509'
import { keyOf, type TokenRole } from '../domain/planned-key.js'
import { type Key, privateKeyOf, readKeys } from '../store/keys.js'
import { type TokenKey, tokenKeys, tokenPrivateKey } from '../store/token-keys.js'
import { intermediatesOf, serverChainOf } from './all-keys.js'
import { trustDomainIn } from './trust-domain.js'

/** The keys of the network that are in use, decrypted, with what follows from them. */
export interface Keyring {
  readonly signer: Signer
  /** PEM of every authority whose certificates may be valid. */
  readonly authorities: readonly string[]
  /** PEM of the certificates between a leaf and the roots, those that only an older root has signed included. */
  readonly intermediates: string
  /** What gateways serve. */
  readonly server: CertifiedKey & {
    readonly key: KeyObject
    /** What follows its certificate. */
    readonly chain: string
    /** How tokens name the certificate. */
    readonly keyId: string
    /** The names and addresses of its certificate. */
    readonly hosts: readonly string[]
  }
  /** PEM of every trusted authority: also the next ones, and the retired ones whose certificates may be valid. */
  readonly bundle: readonly string[]
  /** The bundle as one text. wire: an empty line before each block. */
  readonly caPem: string
  /** Changes when the bundle does. */
  readonly bundleId: string
  readonly trustDomain: string
}

export const readKeyring = async (db: Db, secret: string, now: Date): Promise<Keyring> =>
  keyringOf(await readKeys(db), secret, now)

/** Throws if the secret does not fit, or a key is missing. */
export function keyringOf(keys: readonly Key[], secret: string, now: Date): Keyring {
  const active = (role: Key['role']): Key => {
    const key = keyOf(keys, role, 'active')
    if (!key) throw new Error(`there is no active ${role} key: pki init has not run`)
    return key
  }
  active('root')
  const trustDomain = trustDomainIn(keys)
  if (trustDomain === undefined) throw new Error('the active root has no trust domain')
  const signing = active('signing')
  const server = active('server')
  const privateKey = privateKeyOf(server, secret)
  const { pem } = server
  const trusted = keys.filter((key) => key.role !== 'server' && notAfterOf(key.pem) > now)
  const bundle = trusted.map((key) => key.pem)
  return {
    signer: openSigner({ pem: signing.pem, privateKey: privateKeyOf(signing, secret) }),
    authorities: trusted.filter(({ role }) => role === 'signing').map((key) => key.pem),
    intermediates: intermediatesOf(signing, keys, now),
    server: {
      privateKey,
      pem,
      chain: serverChainOf(server, keys, now),
      key: createPrivateKey(privateKey),
      keyId: fingerprintOfPem(pem),
      hosts: hostsOf(pem),
    },
    bundle,
    caPem: bundle.map((pem) => `\n${pem}`).join(''),
    bundleId: createHash('sha256').update(bundle.join('')).digest('hex'),
    trustDomain,
  }
}

/** The keys that sign tokens. */
export interface TokenKeyring {
  /** Signs the tokens of OpenID Connect now. */
  readonly active: TokenKey & { readonly key: KeyObject }
  /** Signs the tokens of sessions now. `privateKey`: PKCS#8, PEM. */
  readonly session: TokenKey & { readonly privateKey: string }
  /** The public halves of all of them, as JWKs. */
  readonly jwks: readonly JsonWebKey[]
  /** How tokens of OpenID Connect name their keys. */
  readonly ids: readonly string[]
  /** How tokens of sessions name their keys. */
  readonly sessionIds: readonly string[]
}

export async function readTokenKeyring(db: Db, secret: string): Promise<TokenKeyring> {
  const keys = await tokenKeys(db)
  const active = keyOf(keys, 'token', 'active')
  const session = keyOf(keys, 'session', 'active')
  if (!active || !session) throw new Error(`there is no active ${active ? 'session' : 'token'} key`)
  const idsOf = (which: TokenRole) => keys.filter(({ role }) => role === which).map(({ id }) => id)
  return {
    active: { ...active, key: createPrivateKey(await tokenPrivateKey(db, secret, active)) },
    session: { ...session, privateKey: await tokenPrivateKey(db, secret, session) },
    jwks: keys.map(({ id, role, publicJwk }) => ({
      ...publicJwk,
      kid: id,
      use: 'sig',
      alg: role === 'token' ? TOKEN_ALGORITHM : SESSION_TOKEN_ALGORITHM,
    })),
    ids: idsOf('token'),
    sessionIds: idsOf('session'),
  }
}
