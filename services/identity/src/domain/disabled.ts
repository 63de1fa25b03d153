/** When somebody was shut out, and until when; no end means until somebody opens again. */
export interface Shut {
  readonly disabledAt: Date | null
  readonly disabledUntil: Date | null
}

/** wire: a lock that has lapsed keeps its dates, but counts no more. */
export const isDisabled = ({ disabledAt, disabledUntil }: Shut, now: Date): boolean =>
  disabledAt !== null && (disabledUntil === null || disabledUntil > now)
