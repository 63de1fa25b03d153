import { TAG_KEY_CHARACTERS, TAG_KEYS, TAGS_BYTES } from '../limits.js'
import type { Tags } from './types.js'

/** wire: tags that are objects or arrays are left out without an error. */
export const scalarsOf = (value: unknown): Tags =>
  Object.fromEntries(
    Object.entries((value ?? {}) as Tags).filter(([, v]) => v === null || typeof v !== 'object'),
  )

/** Tags in bodies of every kind. */
export const tagsSchema = { type: ['object', 'null'], maxProperties: TAG_KEYS, additionalProperties: true }

/** Why these tags are too large. Endpoints write tags too, and hundreds of rows with them must fit one answer. */
export function refusalOfTags(tags: Tags): string | undefined {
  const keys = Object.keys(tags)
  if (keys.length > TAG_KEYS) return `tags may have at most ${TAG_KEYS} keys`
  if (keys.some((key) => key.length > TAG_KEY_CHARACTERS))
    return `keys of tags may have at most ${TAG_KEY_CHARACTERS} characters`
  if (storedBytes(tags) > TAGS_BYTES) return `tags may take at most ${TAGS_BYTES} bytes`
  return undefined
}

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
