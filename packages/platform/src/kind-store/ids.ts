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
  return `c${last.toString(36).padStart(11, '0')}${word(13, 62).toLowerCase()}`
}
