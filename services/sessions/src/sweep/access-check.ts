import type { ChangeLog } from '@overlay/platform/change-log'
import { type Check, type Followed, soon } from '@overlay/platform/maintenance'
import type { Finding } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { endSessions, nextSessions, sessionsById } from '../store/session.js'
import { type AskPolicy, type Heads, lostOf } from './access.js'

export interface AccessDeps {
  readonly changeLog: ChangeLog
  readonly policy: Pick<AskPolicy, 'findLost'>
  readonly heads: Heads
  readonly followed: Followed
}

const AT_ONCE = 1000

/**
 * Sessions whose access exists no more. It locks nothing: what policy calls lost is asked again after all revocations
 * until then have taken effect.
 */
export const accessCheck = ({ changeLog, policy, heads, followed }: AccessDeps): Check =>
  async function* ({ fix, context }) {
    const { db } = changeLog
    const owners = Object.values(followed)
    const settled = () => Promise.all(owners.map((following) => following?.catchUp(soon(context))))
    for (let last = ''; ; ) {
      const sessions = await nextSessions(db, { kind: 'everything', id: '', sweptTo: last }, AT_ONCE)
      if (sessions.length === 0) return
      last = sessions.at(-1)?.id ?? last
      const suspected = await lostOf(policy, sessions, { ...context, positions: {} })
      if (suspected.length === 0) continue
      await settled()
      const left = await sessionsById(db, suspected)
      const lost = await lostOf(policy, left, { ...context, positions: await heads() })
      if (fix && lost.length > 0)
        await changeLog.write(context, async (tx) => ({
          result: undefined,
          changes: await endSessions(tx, sql`id = any(${lost})`),
        }))
      yield lost.map((id): Finding => ({ description: describe(id), fixed: fix }))
    }
  }

const describe = (id: string): string => `session ${id} is there, though no policy grants its access`
