import { keepRefusal } from './recent.js'

export interface LineLog {
  info(facts: object, message: string): void
}

export interface LineLimits {
  readonly perSource: number
  readonly total: number
  readonly withinMs: number
}

/** A flood must neither fill the disk nor displace the lines of others by rotation. */
export const usualLimits: LineLimits = { perSource: 60, total: 600, withinMs: 60_000 }

/** Writes one line. `source` is the key of the limit. */
export type WriteLine = (source: string, facts: object) => void

/**
 * Lines at `info` with one message, about refusals that clients cause without a session. Of each period, the first lines of each
 * source are written, up to a total; at its end, one line counts those that were left out.
 */
export function boundedLines(log: LineLog, message: string, limits: LineLimits = usualLimits): WriteLine {
  const isWithin = boundedPerSource(limits, (omitted) =>
    log.info({ lines: message, omitted, withinSeconds: limits.withinMs / 1000 }, 'lines omitted'),
  )
  return (source, facts) => {
    if (!isWithin(source)) return
    log.info(facts, message)
    keepRefusal(message, facts)
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
