/** Wakes all that sleep on it. */
export interface Alarm {
  ring(): void
  /** Ends at the next ring, after the time, or when the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

export function openAlarm(): Alarm {
  const sleepers = new Set<() => void>()
  return {
    ring() {
      for (const wake of sleepers) wake()
    },
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const wake = (): void => {
          clearTimeout(timer)
          sleepers.delete(wake)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        const timer = setTimeout(wake, signal.aborted ? 0 : ms)
        sleepers.add(wake)
        signal.addEventListener('abort', wake)
      }),
  }
}
