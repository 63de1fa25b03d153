import { runPeriodically } from '@overlay/process/async'
import type { Db } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { removeEnded } from '../store/outstanding-enrollments.js'

/**
 * The enrollments that pki has ended. Their rows are removed together, once a second: until then reads ask pki, which
 * knows the end. If the process dies before, they do so until the integrity check removes the rows.
 */
export interface EndedEnrollments extends AsyncDisposable {
  /** False: too many wait already, and this one is not taken. */
  add(id: string): boolean
}

const EVERY_MS = 1000
const MOST_KEPT = 10_000

export function openEndedEnrollments(db: Db, log: Pick<Logger, 'warn'>): EndedEnrollments {
  const ended = new Set<string>()

  async function flush(): Promise<void> {
    const ids = [...ended]
    await removeEnded(db, ids)
    for (const id of ids) ended.delete(id)
  }
  const warn = (err: unknown): void => log.warn({ err }, 'ended enrollments are not removed')
  const flushing = runPeriodically(EVERY_MS, () => flush().catch(warn))
  return {
    add(id) {
      if (ended.size >= MOST_KEPT) return false
      ended.add(id)
      return true
    },
    async [Symbol.asyncDispose]() {
      await flushing[Symbol.asyncDispose]()
      await flush().catch(warn)
    },
  }
}
