/** A moment at which histories of guesses were read. */
export interface Reading {
  readonly at: number
  readonly counted: number
}

/** The wrong passwords that this replica has counted: what changes histories while an attempt waits for its hash. */
export interface WrongPasswords {
  /** To be called before a history is read. */
  reading(): Reading
  /** To be called after a wrong password is counted, before the next attempt may start. */
  counted(): void
  /** Whether a history that was read then may be used still. Other replicas have a moment to add to it. */
  isRecent(reading: Reading): boolean
}

/** Little more than a login that need not wait takes between its look-up and its hash. */
const RECENT_MS = 100

export function openWrongPasswords(now: () => number = () => performance.now()): WrongPasswords {
  let counted = 0
  return {
    reading: () => ({ at: now(), counted }),
    counted() {
      counted++
    },
    isRecent: (reading) => reading.counted === counted && now() - reading.at < RECENT_MS,
  }
}
