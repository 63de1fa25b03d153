import { readFileSync } from 'node:fs'
import { RESERVED_FILES } from './limits.js'

/** The most sockets of this process, by its limit of open files. Node raises the soft limit to the hard one. */
export function mostSockets(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined ? Number.POSITIVE_INFINITY : Math.max(1, Number(limit) - RESERVED_FILES)
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return Number.POSITIVE_INFINITY // only Linux has the file
    throw err
  }
}
