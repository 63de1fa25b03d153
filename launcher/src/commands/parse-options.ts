/** The value of an option that is a number above 0. */
export function countOf(option: string, text: string): number {
  const count = Number(text)
  if (!Number.isSafeInteger(count) || count < 1)
    throw new Error(`${option}: '${text}' is not a number above 0`)
  return count
}

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** A time: so long ago (30m, 2h, 7d), or in ISO 8601. */
export function timeOf(text: string, nowMs = Date.now()): Date {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(text) ?? []
  if (count !== undefined) return new Date(nowMs - Number(count) * unitMs[unit as keyof typeof unitMs])
  const time = new Date(text)
  if (!/^\d{4}-\d\d-\d\d/.test(text) || Number.isNaN(time.getTime()))
    throw new Error(`'${text}' is no time such as 30m, 2h, 7d or 2026-01-12T09:30:00Z`)
  return time
}
