import { randomBytes } from 'node:crypto'
import type { IdForm } from '@overlay/model'

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A new id. 59 random bits in a short one: a collision is refused by the primary key, not overwritten. */
export function newId(form: IdForm): string {
  switch (form) {
    case 'short':
      return word(10, 62)
    case 'base62':
      return word(22, 62)
    case 'cuid':
      return cuid()
  }
}

/** wire: the API session of access tokens has a UUID. Of version 7: it begins with its time, in milliseconds. */
export function newTimeUuid(): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(Date.now(), 0, 6)
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6)
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** The time of such a UUID, in milliseconds. */
export const timeOfUuid = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/** Random characters, each equally likely. */
function word(length: number, radix: number): string {
  const limit = 256 - (256 % radix)
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < limit && text.length < length) text += base62[byte % radix]
    }
  }
  return text
}

let last = 0

/** wire: 25 characters, the first a 'c', growing with time also within a millisecond of one process. */
function cuid(): string {
  last = Math.max(Date.now() * 1000, last + 1)
  return cuidAt(last, word(13, 62).toLowerCase())
}

/** A cuid of that time, in microseconds. `tail`: 13 digits or lower-case letters. */
export const cuidAt = (atUs: number, tail: string): string => `c${atUs.toString(36).padStart(11, '0')}${tail}`
