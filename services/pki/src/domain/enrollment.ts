/** Methods whose enrollments are stored. 'ca' has none. */
export type EnrollmentMethod = 'ott' | 'ottca' | 'updb' | 'erott' | 'trott'

export interface Enrollment {
  readonly id: string
  readonly token: string
  readonly method: EnrollmentMethod
  readonly identityId: string | null
  readonly edgeRouterId: string | null
  readonly transitRouterId: string | null
  readonly caId: string | null
  readonly username: string | null
  readonly expiresAt: Date
}

/** The id of the identity or router that the enrollment is for. */
export const ownerIdOf = ({ identityId, edgeRouterId, transitRouterId }: Enrollment): string =>
  identityId ?? edgeRouterId ?? transitRouterId ?? ''

interface Wish {
  readonly method: string
  readonly caId: string
  readonly username: string
  readonly expiresAtMs: number // 0: as configured
}

/** Why an enrollment cannot be granted: the member at fault, and the reason. */
export interface Objection {
  readonly field: 'expiresAt' | 'caId' | 'username'
  readonly reason: string
  readonly value: string
}

export function objectionTo(
  { method, caId, username, expiresAtMs }: Wish,
  now: Date,
  caExists: boolean,
): Objection | undefined {
  if (expiresAtMs !== 0 && expiresAtMs <= now.getTime()) {
    const value = new Date(expiresAtMs).toISOString()
    return { field: 'expiresAt', reason: 'expiresAt must be in the future', value }
  }
  if (method === 'ottca' && !caExists) return { field: 'caId', reason: 'ca not found', value: caId }
  const { length } = [...username]
  if (method === 'updb' && (length < 4 || length > 100))
    return { field: 'username', reason: 'username must have 4 to 100 characters', value: username }
  return undefined
}
