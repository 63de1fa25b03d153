import { createHash, randomUUID, X509Certificate } from 'node:crypto'
import { SOON_MS } from '../limits.js'

/** Lifetimes of tokens, in seconds. Id tokens last as long as access tokens. */
export interface TokenLifetimes {
  readonly accessSeconds: number
  readonly refreshSeconds: number
}

/** What the tokens of an API session say. */
export interface TokenFacts {
  readonly issuer: string
  readonly clientId: string
  readonly apiSessionId: string
  readonly identityId: string
  readonly identityName: string
  readonly isAdmin: boolean
  readonly externalId: string | null
  readonly scopes: readonly string[]
  readonly nonce: string
  /** Of the API session, for amr. */
  readonly method: string
  readonly isMfaComplete: boolean
  readonly hasSecondToken: boolean
  readonly authTimeSeconds: number
  readonly configTypes: readonly string[]
  /** SHA-1 of the certificates by which routers recognize its connections: those of the identity and of the session. */
  readonly fingerprints: readonly string[]
  /** Of the chain of a login by certificate, leaf first. Empty: a login by another method, or the leaf was removed. */
  readonly loginFingerprints: readonly string[]
  /** The certificate of the login has ended or ends soon, and the auth policy allows that. */
  readonly mayCertsExpire: boolean
  readonly envInfo: object | null
  readonly sdkInfo: object | null
  readonly remoteAddress: string
  readonly isCertExtendable: boolean
}

export type Claims = Readonly<Record<string, unknown>>

/** wire: the names of login methods in the claim `amr`. */
const methodNames: Readonly<Record<string, string>> = { updb: 'password', cert: 'cert', 'ext-jwt': 'ext-jwt' }

const methodsOf = ({ method, isMfaComplete, hasSecondToken }: TokenFacts): string[] => [
  methodNames[method] ?? method,
  ...(isMfaComplete ? ['totp'] : []),
  ...(hasSecondToken ? ['ejs'] : []),
]

/** Of every token. differs: amr also in the access token. */
const common = (facts: TokenFacts, now: number, seconds: number): Claims => ({
  iss: facts.issuer,
  sub: facts.identityId,
  aud: [facts.clientId],
  iat: now,
  exp: now + seconds,
  auth_time: facts.authTimeSeconds,
  amr: methodsOf(facts),
  client_id: facts.clientId,
})

const bearer = (facts: TokenFacts, now: number, seconds: number, type: 'a' | 'r'): Claims => ({
  ...common(facts, now, seconds),
  jti: randomUUID(),
  nbf: now,
  scopes: facts.scopes,
  z_asid: facts.apiSessionId,
  z_aid: facts.clientId,
  z_t: type,
  z_cfs: facts.fingerprints.length > 0 ? facts.fingerprints : null,
  ...(facts.mayCertsExpire && { z_cae: true }),
  z_env: facts.envInfo,
  z_sdk: facts.sdkInfo,
  z_ra: facts.remoteAddress,
  z_ice: facts.isCertExtendable,
  ...(facts.configTypes.length > 0 && { z_ct: facts.configTypes }),
  ...(facts.isAdmin && { z_ia: true }),
  ...(facts.externalId !== null && { z_eid: facts.externalId }),
})

export const accessClaims = (facts: TokenFacts, now: number, { accessSeconds }: TokenLifetimes): Claims =>
  bearer(facts, now, accessSeconds, 'a')

/** `jti` is the id of its row. wire: it names certificates only after a login by certificate. */
export const refreshClaims = (
  facts: TokenFacts,
  now: number,
  { refreshSeconds }: TokenLifetimes,
): Claims & { readonly jti: string } => ({
  ...bearer(facts, now, refreshSeconds, 'r'),
  ...(facts.loginFingerprints.length === 0 && { z_cfs: null }),
  jti: randomUUID(),
})

/** A certificate has ended, or ends before a token that is issued now. */
export const endsSoon = (certificatePem: string | null, now: Date): boolean =>
  certificatePem !== null &&
  new X509Certificate(certificatePem).validToDate.getTime() < now.getTime() + SOON_MS

/**
 * For routers, as a posture response: the second factor was passed when the token was issued. differs: it expires, because
 * its key does; clients present it to each router that they connect to.
 */
export const totpClaims = (
  { issuer, identityId, apiSessionId }: Pick<TokenFacts, 'issuer' | 'identityId' | 'apiSessionId'>,
  now: number,
  { refreshSeconds }: TokenLifetimes,
): Claims => ({
  iss: issuer,
  sub: identityId,
  aud: ['openziti'],
  iat: now,
  exp: now + refreshSeconds,
  jti: randomUUID(),
  z_asid: apiSessionId,
  z_t: 't',
})

/** wire: id tokens have no `z_asid`. Without at_hash, which is added when it is signed. `code`: redeemed for it. */
export const idClaims = (
  facts: TokenFacts,
  now: number,
  { accessSeconds }: TokenLifetimes,
  code: string | undefined,
): Claims => ({
  ...common(facts, now, accessSeconds),
  azp: facts.clientId,
  name: facts.identityName,
  z_ia: facts.isAdmin,
  ...(facts.nonce !== '' && { nonce: facts.nonce }),
  ...(facts.externalId !== null && { z_eid: facts.externalId }),
  ...(code !== undefined && { c_hash: halfHash(code) }),
})

/** Of algorithms with SHA-256: its left half. */
const halfHash = (text: string): string =>
  createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url')
