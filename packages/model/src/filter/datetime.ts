const form = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(?:Z|([+-])(\d\d):(\d\d))$/i

/** A time of RFC 3339, its letters in either case; null for a day or hour that does not exist, unlike `Date`. */
export function datetimeOf(text: string): Date | null {
  const parts = form.exec(text)
  if (!parts) return null
  const [, year, month, day, hour, minute, second, fraction = '.0', sign, hours = '0', minutes = '0'] = parts
  const time = new Date(0)
  time.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  time.setUTCHours(Number(hour), Number(minute), Number(second), Math.trunc(Number(fraction) * 1000))
  if (time.toISOString().slice(0, 19) !== text.slice(0, 19).toUpperCase()) return null
  if (Number(hours) > 23 || Number(minutes) > 59) return null
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
  return new Date(time.getTime() - offset * 60_000)
}
