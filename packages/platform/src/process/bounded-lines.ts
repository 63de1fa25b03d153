export interface LineLog {
  info(facts: object, message: string): void
}

export interface LineLimits {
  readonly perSource: number
  readonly total: number
  readonly withinMs: number
}

/** A flood must neither fill the disk nor displace the lines of others by rotation. */
const usualLimits: LineLimits = { perSource: 60, total: 600, withinMs: 60_000 }

/** Writes one line. `source` is the key of the limit. */
export type WriteLine = (source: string, facts: object) => void

/**
 * Lines at `info` with one message, about what clients cause without a session. Of each period, the first lines of each
 * source are written, up to a total; at its end, one line counts those that were left out.
 */
export function boundedLines(
  log: LineLog,
  message: string,
  { perSource, total, withinMs }: LineLimits = usualLimits,
): WriteLine {
  let written = new Map<string, number>() // of this period, by source
  let lines = 0
  let omitted = 0
  let isCounting = false

  function end(): void {
    if (omitted > 0) log.info({ lines: message, omitted, withinSeconds: withinMs / 1000 }, 'lines omitted')
    ;[written, lines, omitted, isCounting] = [new Map(), 0, 0, false]
  }

  return (source, facts) => {
    if (!isCounting) setTimeout(end, withinMs).unref()
    isCounting = true
    const own = written.get(source) ?? 0
    if (own >= perSource || lines >= total) {
      omitted++
      return
    }
    written.set(source, own + 1)
    lines++
    log.info(facts, message)
  }
}
