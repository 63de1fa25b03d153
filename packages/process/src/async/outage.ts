import { OUTAGE_MS, OUTAGE_REPORT_MS } from '../limits.js'
import { isStopping } from '../process.js'

/** Failures of one connection, and signs that it works. */
export interface Outage extends Disposable {
  failed(err: unknown): void
  works(): void
}

/**
 * Reports a failure that lasts, with the latest error, and again when its cause has changed: the first failures of an
 * outage may hide the one that keeps it going. A peer that restarts interrupts connections for a moment, and when the
 * product stops, peers end at the same time: neither is worth a warning.
 */
export function openOutage(
  report: (err: unknown) => void,
  { lastsMs = OUTAGE_MS, isEnding = isStopping } = {},
): Outage {
  let latest: unknown
  let reportedCause: string | undefined
  let pauseMs = lastsMs
  let timer: NodeJS.Timeout | undefined
  function reportLatest(): void {
    timer = undefined
    const cause = causeOf(latest)
    if (isEnding() || cause === reportedCause) return
    reportedCause = cause
    pauseMs = Math.min(Math.max(OUTAGE_MS, 2 * pauseMs), OUTAGE_REPORT_MS)
    report(latest)
  }
  function end(): void {
    clearTimeout(timer)
    timer = undefined
    reportedCause = undefined
    pauseMs = lastsMs
  }
  return {
    failed(err) {
      latest = err
      if (causeOf(err) !== reportedCause) timer ??= setTimeout(reportLatest, pauseMs).unref()
    },
    works: end,
    [Symbol.dispose]: end,
  }
}

/** Equal for failures of one cause: the codes and messages of an error and of what it wraps. */
function causeOf(err: unknown): string {
  const texts: string[] = []
  for (let at = err; at !== undefined && texts.length < 10; at = at instanceof Error ? at.cause : undefined) {
    const { code } = Object(at) as { readonly code?: unknown }
    texts.push(`${code ?? ''} ${at instanceof Error ? at.message : String(at)}`)
  }
  return texts.join('\n')
}
