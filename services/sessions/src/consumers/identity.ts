import type { Effects } from '@overlay/platform/change-log'
import type { Change } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { type Revocation, recordRevocations } from '../store/revocation.js'
import { endSessions } from '../store/session.js'
import type { Sweeping } from '../sweep/sweep.js'
import { isDeleted, isNew } from './changes.js'

/** More of them are ended by the sweep. */
const ENDED_AT_ONCE = 500

/** A session ends with its API session and its identity, and when the identity loses the service. */
export const identityEffects = (sweeping: Pick<Sweeping, 'wake'>): Effects => ({
  kinds: ['identities', 'api-sessions'],
  concerns: mayEndSessions,

  async apply(tx, changes, upto) {
    const gone = changes.filter(isDeleted)
    const idsOf = (kind: string): string[] => gone.filter((one) => one.kind === kind).map(({ id }) => id)
    const ended = await endSessions(
      tx,
      sql`api_session_id = any(${idsOf('api-sessions')}) or identity_id = any(${idsOf('identities')})`,
      ENDED_AT_ONCE,
    )
    const hasMore = ended.length === ENDED_AT_ONCE
    await recordRevocations(
      tx,
      'identity',
      upto,
      changes.filter(mayEndSessions).map(
        (change): Revocation => ({
          kind: change.kind === 'identities' ? 'identity' : 'api-session',
          id: change.id,
          number: change.number,
          isPending: hasMore || !isDeleted(change),
        }),
      ),
    )
    return ended
  },

  // whether its sessions may stay is asked of policy, which refuses what it does not know
  async unknown(tx, { kind, id, number }, upto) {
    await recordRevocations(tx, 'identity', upto, [
      { kind: kind === 'identities' ? 'identity' : 'api-session', id, number, isPending: true },
    ])
    return []
  },

  async reload(tx, _rows, upto) {
    await recordRevocations(tx, 'identity', upto, [
      { kind: 'everything', id: '', number: upto.number, isPending: true },
    ])
    return []
  },

  committed: sweeping.wake,
})

/** Every deletion, and identities that may have lost something. */
const mayEndSessions = (change: Change): boolean =>
  isDeleted(change) || (change.kind === 'identities' && !isNew(change))
