const MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3, // the micro sign
  μs: 1e-3, // the Greek letter
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

const UNITS = 'ns|us|µs|μs|ms|s|m|h'
const PART = new RegExp(`(\\d+\\.?\\d*|\\.\\d+)(${UNITS})`, 'gy')
/** The longest duration in the nanoseconds of an int64. */
const MOST_MS = 9_223_372_036_854

/** wire: a duration in the syntax of Go, such as `1h30m`, `-1.5h`, `300ms`. In milliseconds; undefined: invalid. */
export function goDuration(text: string): number | undefined {
  const unsigned = text.replace(/^[+-]/, '')
  if (unsigned === '0') return 0
  let sum = 0
  let end = 0
  for (const [part, number, unit] of unsigned.matchAll(PART)) {
    sum += Number(number) * (MS[unit ?? ''] ?? 0)
    end += part.length
  }
  if (end === 0 || end !== unsigned.length || sum > MOST_MS) return undefined
  return text.startsWith('-') ? -sum : sum
}
