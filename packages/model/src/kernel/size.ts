/**
 * How many bytes a JSON value takes as text of the database, which puts a space behind each comma and colon and writes
 * numbers without an exponent: `1e300` takes 301.
 */
export function storedBytes(value: unknown): number {
  if (value === null || value === undefined) return 4
  if (typeof value === 'string') return Buffer.byteLength(JSON.stringify(value))
  if (typeof value === 'number') return bytesOfNumber(value)
  if (typeof value !== 'object') return 5
  if (value instanceof Date) return 26
  let bytes = 2
  if (Array.isArray(value)) for (const item of value) bytes += storedBytes(item) + 2
  else
    for (const [name, member] of Object.entries(value)) bytes += storedBytes(name) + storedBytes(member) + 4
  return bytes
}

function bytesOfNumber(value: number): number {
  const text = String(value)
  const [digits = '', exponent] = text.split('e')
  return digits.length + Math.abs(Number(exponent ?? 0)) + 2
}
