/** An API session, as routers know it. There may be a million, so its fingerprints are one text. */
export interface ApiSession {
  readonly id: string
  readonly token: string
  readonly identityId: string
  /** Separated by spaces, SHA-1 in hex. One that counts for a limited time is followed by `@` and its end in ms. */
  fingerprints: string
  /** Where it is among the chunks of a full state. */
  chunk: object | undefined
}

interface Payload {
  readonly id: string
  readonly token: string
  readonly identityId: string
  readonly fingerprints: readonly string[]
  readonly expiring: readonly { readonly fingerprint: string; readonly validToMs: number }[]
}

/** Throws if members are missing. */
export function decodeApiSession(json: Uint8Array): ApiSession {
  const payload = JSON.parse(Buffer.from(json).toString()) as Payload
  const { id, token, identityId, fingerprints, expiring } = payload
  if (!id || !token || !identityId) throw new Error('API session without id, token or identity')
  const unlimited = new Set(fingerprints)
  const limited = new Map(expiring.map(({ fingerprint, validToMs }) => [fingerprint, validToMs]))
  for (const fingerprint of unlimited) limited.delete(fingerprint)
  const parts = [
    ...unlimited,
    ...[...limited].map(([fingerprint, validToMs]) => `${fingerprint}@${validToMs}`),
  ]
  return { id, token, identityId, fingerprints: parts.sort().join(' '), chunk: undefined }
}

type Fingerprints = Pick<ApiSession, 'fingerprints'>

/** Whether some fingerprints count for a limited time. */
export const hasLimited = ({ fingerprints }: Fingerprints): boolean => fingerprints.includes('@')

/** The fingerprints that count at this time. */
export const fingerprintsAt = ({ fingerprints }: Fingerprints, nowMs: number): string[] =>
  fingerprints === ''
    ? []
    : fingerprints.split(' ').flatMap((part) => {
        const [fingerprint = '', end] = part.split('@')
        return end === undefined || Number(end) > nowMs ? [fingerprint] : []
      })

/** The text of the fingerprints that count at this time. */
export const withoutExpired = ({ fingerprints }: Fingerprints, nowMs: number): string =>
  fingerprints
    .split(' ')
    .filter((part) => Number(part.split('@')[1] ?? Number.POSITIVE_INFINITY) > nowMs)
    .join(' ')
