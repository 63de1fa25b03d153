/** When an identity was disabled, and until when. Without an end it stays disabled until an admin enables it. */
export interface Disabling {
  readonly disabledAt: Date | null
  readonly disabledUntil: Date | null
}

/** wire: an identity whose lock has expired may log in; answers still show the dates of the lock. */
export const isDisabled = ({ disabledAt, disabledUntil }: Disabling, now: Date): boolean =>
  disabledAt !== null && (disabledUntil === null || disabledUntil > now)
