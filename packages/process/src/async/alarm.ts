/** Wakes all that sleep on it. */
export interface Alarm {
  ring(): void
  /** Ends at the next ring, when the signal is aborted, or after the time, where there is one. */
  sleep(signal: AbortSignal, ms?: number): Promise<void>
}

export function openAlarm(): Alarm {
  const sleepers = new Set<() => void>()
  return {
    ring() {
      for (const wake of [...sleepers]) wake()
    },
    sleep: (signal, ms) =>
      new Promise((resolve) => {
        const wake = (): void => {
          clearTimeout(timer)
          sleepers.delete(wake)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        const timer = ms === undefined ? undefined : setTimeout(wake, ms)
        sleepers.add(wake)
        signal.addEventListener('abort', wake)
        if (signal.aborted) wake()
      }),
  }
}
