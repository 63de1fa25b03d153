/** How often an owner sends a sign of life on a stream, and the silence after which the stream is dead. */
export interface Signs {
  readonly signMs: number
  readonly silenceMs: number
}

/** While somebody reads what is followed: it is fresh for 2 s after a sign. */
export const inUse: Signs = { signMs: 1000, silenceMs: 3000 }

/** Otherwise. Changes are still sent at once. */
export const atRest: Signs = { signMs: 5000, silenceMs: 12_000 }

/** From the last question for freshness until the signs become rare. */
export const USE_MS = 30_000
