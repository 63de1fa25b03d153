/** When an identity was disabled, and until when. Without an end it stays disabled until an admin enables it. */
export interface Disabling {
  readonly disabledAt: Date | null
  readonly disabledUntil: Date | null
}

/** wire: a lock that has expired keeps its dates, but has no effect. */
export const isDisabled = ({ disabledAt, disabledUntil }: Disabling, now: Date): boolean =>
  disabledAt !== null && (disabledUntil === null || disabledUntil > now)
