import { LINE_LIMITS } from './limits.js'
import { keepRefusal } from './recent.js'

type Level = 'info' | 'warn' | 'error'

export type LineLog<L extends Level = 'info'> = {
  readonly [Name in L]: (facts: object, message: string) => void
}

export interface LineLimits {
  readonly perSource: number
  readonly total: number
  readonly withinMs: number
}

/** Writes one line. `source` is the key of the limit. */
export type WriteLine = (source: string, facts: object) => void

/**
 * Lines with one message that clients or routers can cause: refusals at `info`, failures at `warn` or `error`. Of each period, the
 * first lines of each source are written, up to a total; at its end, one line counts those that were left out.
 */
export function boundedLines<L extends Level = 'info'>(
  log: LineLog<NoInfer<L>>,
  message: string,
  limits: LineLimits = LINE_LIMITS,
  level = 'info' as L,
): WriteLine {
  const isWithin = boundedPerSource(limits, (omitted) =>
    log[level]({ lines: message, omitted, withinSeconds: limits.withinMs / 1000 }, 'lines omitted'),
  )
  return (source, facts) => {
    if (!isWithin(source)) return
    log[level](facts, message)
    if (level === 'info') keepRefusal(message, facts)
  }
}

/**
 * Counts by source. Of each period, true for the first of each source, up to a total. `end`: called after a period of
 * which some were left out.
 */
export function boundedPerSource(
  { perSource, total, withinMs }: LineLimits,
  end: (omitted: number) => void = () => undefined,
): (source: string) => boolean {
  let counts = new Map<string, number>() // of this period
  let counted = 0
  let omitted = 0
  let isCounting = false

  function endPeriod(): void {
    if (omitted > 0) end(omitted)
    ;[counts, counted, omitted, isCounting] = [new Map(), 0, 0, false]
  }

  return (source) => {
    if (!isCounting) setTimeout(endPeriod, withinMs).unref()
    isCounting = true
    const own = counts.get(source) ?? 0
    if (own >= perSource || counted >= total) {
      omitted++
      return false
    }
    counts.set(source, own + 1)
    counted++
    return true
  }
}
