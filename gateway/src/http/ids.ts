import { randomBytes, randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.-'
const pool = Buffer.alloc(8192)
let used = pool.length

/** Id of one request, in logs and error answers. wire: nine characters, like other short ids. */
export function requestId(): string {
  if (used + 9 > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  let id = ''
  for (const end = used + 9; used < end; used++) id += ALPHABET[(pool[used] ?? 0) & 63]
  return id
}

/** Id of this process. wire: 25 characters that begin with c. */
export function instanceId(): string {
  const random = BigInt(`0x${randomBytes(16).toString('hex')}`).toString(36)
  return `c${random.padStart(24, '0').slice(-24)}`
}
