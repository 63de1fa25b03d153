const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** A time span in its largest unit, rounded down. */
export function span(ms: number): string {
  for (const [unit, length] of units) if (ms >= length) return `${Math.floor(ms / length)}\u00a0${unit}`
  return `${Math.max(0, Math.round(ms))}\u00a0ms`
}

/** In UTC, to the second. */
export const timeText = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
