/**
 * An API session, as routers know it: by one of its tokens. One whose client presents access tokens has several of
 * them, with the same id. There may be a million, so the fingerprints are one text.
 */
export interface ApiSession {
  readonly id: string
  readonly token: string
  /** Of an access token. */
  readonly tokenId: string | undefined
  readonly identityId: string
  /** Separated by spaces, SHA-1 in hex. One that counts for a limited time is followed by `@` and its end in ms. */
  fingerprints: string
}

interface Payload {
  readonly id: string
  readonly token: string | null
  /** Absent: identity is of the release before. */
  readonly accessTokens?: readonly { readonly id: string; readonly token: string }[]
  readonly identityId: string
  readonly fingerprints: readonly string[]
  readonly expiring: readonly { readonly fingerprint: string; readonly validToMs: number }[]
  /** Absent: it is not revoked, or identity is of the release before. */
  readonly revokedUntilMs?: number
}

/** Access tokens of an API session that routers must refuse, also where they verify tokens themselves. */
export interface Revocation {
  readonly identityId: string
  /** The last of them expires. */
  readonly untilMs: number
}

/** Undefined: the API session is not revoked. */
export function decodeRevocation(json: Uint8Array): Revocation | undefined {
  const { identityId, revokedUntilMs } = JSON.parse(Buffer.from(json).toString()) as Payload
  return revokedUntilMs === undefined ? undefined : { identityId, untilMs: revokedUntilMs }
}

/** One for each token, oldest first. Throws if members are missing. */
export function decodeApiSessions(json: Uint8Array): ApiSession[] {
  const payload = JSON.parse(Buffer.from(json).toString()) as Payload
  const { id, token, accessTokens = [], identityId } = payload
  if (!id || !identityId || (token !== null && !token)) throw new Error('API session without members')
  const common = { id, identityId, fingerprints: fingerprintsOf(payload) }
  if (token !== null) return [{ ...common, token, tokenId: undefined }]
  return accessTokens.map((one) => ({ ...common, token: one.token, tokenId: one.id }))
}

function fingerprintsOf({ fingerprints, expiring }: Payload): string {
  const unlimited = new Set(fingerprints)
  const limited = new Map(expiring.map(({ fingerprint, validToMs }) => [fingerprint, validToMs]))
  for (const fingerprint of unlimited) limited.delete(fingerprint)
  const parts = [
    ...unlimited,
    ...[...limited].map(([fingerprint, validToMs]) => `${fingerprint}@${validToMs}`),
  ]
  return parts.sort().join(' ')
}

type Fingerprints = Pick<ApiSession, 'fingerprints'>

/** Whether some fingerprints count for a limited time. */
export const hasLimited = ({ fingerprints }: Fingerprints): boolean => fingerprints.includes('@')

/** The fingerprints that count at this time. */
export const fingerprintsAt = ({ fingerprints }: Fingerprints, nowMs: number): string[] =>
  fingerprints === ''
    ? []
    : fingerprints.split(' ').flatMap((entry) => {
        const [fingerprint = '', end] = entry.split('@')
        return end === undefined || Number(end) > nowMs ? [fingerprint] : []
      })

/** The text of the fingerprints that count at this time. */
export const withoutExpired = ({ fingerprints }: Fingerprints, nowMs: number): string =>
  fingerprints
    .split(' ')
    .filter((entry) => Number(entry.split('@')[1] ?? Number.POSITIVE_INFINITY) > nowMs)
    .join(' ')
