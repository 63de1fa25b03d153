import { randomBytes } from 'node:crypto'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.-'

/** Id of one request, in logs and error answers. wire: nine characters, like other short ids. */
export function requestId(): string {
  let id = ''
  for (const byte of randomBytes(9)) id += ALPHABET[byte & 63]
  return id
}

/** Id of this process. wire: 25 characters that begin with c. */
export function instanceId(): string {
  const random = BigInt(`0x${randomBytes(16).toString('hex')}`).toString(36)
  return `c${random.padStart(24, '0').slice(-24)}`
}
