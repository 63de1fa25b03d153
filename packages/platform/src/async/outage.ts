import { isStopping } from '../process/process.js'

/** Longer than a replica of a peer takes to restart. */
const LASTS_MS = 3000

/** Failures of one connection, and signs that it works. */
export interface Outage extends Disposable {
  failed(err: unknown): void
  works(): void
}

/**
 * Reports a failure that lasts, once, with the latest error. A peer that restarts interrupts connections for a moment,
 * and when the product stops, peers end at the same time: neither is worth a warning.
 */
export function openOutage(
  report: (err: unknown) => void,
  { lastsMs = LASTS_MS, isEnding = isStopping } = {},
): Outage {
  let latest: unknown
  let timer: NodeJS.Timeout | undefined
  const end = (): void => {
    clearTimeout(timer)
    timer = undefined
  }
  return {
    failed(err) {
      latest = err
      timer ??= setTimeout(() => {
        if (!isEnding()) report(latest)
      }, lastsMs).unref()
    },
    works: end,
    [Symbol.dispose]: end,
  }
}
