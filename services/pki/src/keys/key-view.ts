import { createPublicKey, type JsonWebKey, type KeyObject, X509Certificate } from 'node:crypto'
import { fingerprintOfPem } from '@overlay/x509'
import { describeKey } from '../domain/describe-key.js'
import { neededUntil, renewalOf } from '../domain/key-plan.js'
import { isTokenRole, type KeyRole, type KeyState, keyRoles, type PlannedKey } from '../domain/planned-key.js'
import { type TokenKeyRules, tokensUntil } from '../domain/token-key-plan.js'
import { type AllKeys, subjectOf } from './all-keys.js'

/** A key of the network as the operator sees it. */
export interface KeyView {
  readonly id: string
  readonly role: KeyRole
  readonly state: KeyState
  /** Such as RSA 2048 or P-256. */
  readonly kind: string
  /** Of its certificate. Undefined: keys of tokens have none. */
  readonly subject: string | undefined
  /** SHA-1 of the certificate, hex; of a key that signs tokens its RFC 7638 thumbprint. */
  readonly fingerprint: string
  readonly notBefore: Date | undefined
  readonly notAfter: Date | undefined
  readonly createdAt: Date
  /** When it is replaced automatically; of the server's key, its certificate alone. Undefined: it is not. */
  readonly renewsAt: Date | undefined
  /** True: no private key is here, it only anchors trust. */
  readonly isPublicOnly: boolean
  readonly source: 'generated' | 'provided'
  /** What is valid only as long as this key is known. Undefined: nothing. */
  readonly outstanding: Outstanding | undefined
}

export interface Outstanding {
  /** What an authority has certified, enrollment tokens that the key of the server signed, or tokens of sessions. */
  readonly what: 'certificates' | 'enrollments' | 'tokens'
  /** Undefined: they are not counted. */
  readonly count: number | undefined
  /** When the last of them ends, at the latest. */
  readonly until: Date
}

export interface ViewDeps {
  readonly tokens: TokenKeyRules
  readonly now: Date
  /** Unexpired enrollments. */
  readonly enrollments: { readonly count: number; readonly until: Date | null }
}

/** By role, then the order of their creation. */
export function keyViews({ planned }: AllKeys, deps: ViewDeps): readonly KeyView[] {
  return planned
    .map((key): KeyView => {
      const { id, role, state, source, createdAt } = key
      const { pem, certificate } = 'pem' in key ? key : noCertificate
      return {
        ...{ id, role, state, source, createdAt },
        kind: describeKey(publicKeyOf(key)),
        subject: pem && subjectOf(pem),
        fingerprint: pem ? fingerprintOfPem(pem) : id,
        notBefore: certificate?.notBefore,
        notAfter: certificate?.notAfter,
        renewsAt: renewalOf(key, deps.tokens),
        isPublicOnly: certificate?.canSign === false,
        outstanding: outstandingOf(key, planned, deps),
      }
    })
    .sort((a, b) => keyRoles.indexOf(a.role) - keyRoles.indexOf(b.role))
}

const noCertificate = { pem: undefined, certificate: undefined }

const publicKeyOf = (key: AllKeys['planned'][number]): KeyObject =>
  'pem' in key
    ? new X509Certificate(key.pem).publicKey
    : createPublicKey({ key: key.publicJwk as JsonWebKey, format: 'jwk' })

function outstandingOf(
  key: PlannedKey,
  keys: readonly PlannedKey[],
  { tokens, now, enrollments }: ViewDeps,
): Outstanding | undefined {
  if (key.state === 'next') return undefined
  const { count, until: last } = enrollments
  if (key.role === 'server')
    return key.state === 'active' && last ? { what: 'enrollments', count, until: last } : undefined
  const until = isTokenRole(key.role) ? tokensUntil(key, tokens, now) : neededUntil(key, keys, now)
  if (!until || until <= now) return undefined
  return { what: isTokenRole(key.role) ? 'tokens' : 'certificates', count: undefined, until }
}
