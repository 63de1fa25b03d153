import { randomFillSync } from 'node:crypto'

const pool = Buffer.alloc(8192)
let used = pool.length

/**
 * Random bytes for ids, to be read before the next call. Many are generated at once: a separate call costs ten times as
 * much.
 */
export function pooledRandom(bytes: number): Buffer {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  return pool.subarray(used - bytes, used)
}

/** The same as hexadecimal digits. */
export const randomHex = (bytes: number): string => pooledRandom(bytes).toString('hex')
