/** How long an API session lasts, in seconds. */
export interface Lifetimes {
  /** After the last use. */
  readonly timeoutSeconds: number
  /** After its start; 0: no limit. */
  readonly lifetimeSeconds: number
}

/**
 * Milliseconds until a session of that age reaches its lifetime, or `leftMs` have passed; at least one. 0: no limit.
 */
export function remainingMs({ lifetimeSeconds }: Lifetimes, ageMs: number, leftMs: number | null): number {
  const ends = [lifetimeSeconds === 0 ? null : lifetimeSeconds * 1000 - ageMs, leftMs].filter(
    (ms) => ms !== null,
  )
  return ends.length === 0 ? 0 : Math.max(Math.floor(Math.min(...ends)), 1)
}
