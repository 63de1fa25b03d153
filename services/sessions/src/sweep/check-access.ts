import { type Check, type CheckDeps, catchUpAll } from '@overlay/maintenance'
import type { Finding } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { endSessions, nextSessions, sessionsById } from '../store/session.js'
import { type AccessPolicy, findAccessChanges, type Heads } from './ask-policy.js'

export interface AccessCheckDeps extends CheckDeps {
  readonly policy: Pick<AccessPolicy, 'findLost'>
  readonly heads: Heads
}

const PAGE_SIZE = 1000

/**
 * Sessions that lost their access. It locks nothing: sessions that policy calls lost are checked again after all
 * revocations until then have taken effect.
 */
export const accessCheck = ({ changeLog, policy, heads, consumers }: AccessCheckDeps): Check =>
  async function* ({ fix, context }) {
    const { db } = changeLog
    for (let last = ''; ; ) {
      const sessions = await nextSessions(db, { kind: 'everything', id: '', sweptTo: last }, PAGE_SIZE)
      if (sessions.length === 0) return
      last = sessions.at(-1)?.id ?? last
      const suspected = await findAccessChanges(policy, sessions, { ...context, positions: {} })
      if (suspected.lost.length === 0) continue
      await catchUpAll(consumers, context)
      const left = await sessionsById(db, suspected.lost)
      const { lost } = await findAccessChanges(policy, left, { ...context, positions: await heads() })
      if (fix && lost.length > 0)
        await writeChanges(changeLog, context, (tx) => endSessions(tx, sql`id = any(${lost})`))
      yield lost.map((id): Finding => ({ description: describe(id), fixed: fix }))
    }
  }

const describe = (id: string): string => `session ${id} is there, though no policy grants its access`
