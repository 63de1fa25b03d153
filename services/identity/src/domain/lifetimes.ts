/** How long an API session lasts, in seconds. */
export interface Lifetimes {
  /** After the last use. */
  readonly timeoutSeconds: number
  /** After its start; 0: no limit. */
  readonly lifetimeSeconds: number
}

/** Milliseconds until a session of that age reaches its lifetime, at least one; 0: no limit. */
export const remainingMs = ({ lifetimeSeconds }: Lifetimes, ageMs: number): number =>
  lifetimeSeconds === 0 ? 0 : Math.max(Math.floor(lifetimeSeconds * 1000 - ageMs), 1)
