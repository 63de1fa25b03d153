import type { Effects } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import { type Change, ownContext } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { endTerminators } from '../kinds/terminator.js'
import { nameServices } from '../store/known-service.js'
import { type Revocation, recordRevocations, type ScopeKind } from '../store/revocation.js'
import { endSessions, UNDETERMINED } from '../store/session.js'
import type { Sweeping } from '../sweep/sweep.js'
import { isDeleted, isNew } from './changes.js'

/** More of them are ended by the sweep. */
const ENDED_AT_ONCE = 500

/** A session ends with its service, and when a policy or posture takes the service away; a terminator with its service. */
export const policyEffects = (sweeping: Pick<Sweeping, 'wake'>, names: Names): Effects => ({
  kinds: ['services', 'service-policies', 'posture-checks', 'posture-data'],

  async apply(tx, changes, upto) {
    const services = of('services', changes)
    const gone = services.filter(isDeleted).map(({ id }) => id)
    const ended = await endSessions(tx, sql`service_id = any(${gone})`, ENDED_AT_ONCE)
    const hasMore = ended.length === ENDED_AT_ONCE
    const terminators = await endTerminators(tx, sql`service_id = any(${gone})`)
    await nameServices(tx, services)
    await recordRevocations(
      tx,
      'policy',
      upto,
      changes.flatMap((change) => revocationsOf(change, hasMore)),
    )
    return [...ended, ...terminators]
  },

  // whether its sessions may stay is asked of policy, which refuses what it does not know
  async unknown(tx, { kind, id, number }, upto) {
    const scope = scopeKinds[kind]
    if (scope) await recordRevocations(tx, 'policy', upto, [{ kind: scope, id, number, isPending: true }])
    return []
  },

  async reload(tx, rows, upto) {
    await tx.query(sql`delete from known_service`)
    for await (const services of rows.pages('services')) await nameServices(tx, services)
    // one that is younger than the load is not among its rows
    const missing = await tx.query<{ id: string }>(sql`
      select distinct service_id as id from terminator where service_id not in (${rows.ids('services')})`)
    const ids = missing.rows.map(({ id }) => id)
    const living = await names('services', ids, ownContext(AbortSignal.timeout(30_000)))
    const gone = ids.filter((id) => !living.has(id))
    const ended = await endTerminators(tx, sql`service_id = any(${gone})`)
    await recordRevocations(tx, 'policy', upto, [
      { kind: 'everything', id: '', number: upto.number, isPending: true },
    ])
    return ended
  },

  committed: sweeping.wake,
})

const of = (kind: string, changes: readonly Change[]): Change[] =>
  changes.filter((change) => change.kind === kind)

const scopeKinds: Readonly<Record<string, ScopeKind>> = {
  services: 'service',
  'service-policies': 'policy',
  'posture-checks': 'posture-check',
  'posture-data': 'identity',
}

/** Whose access the change can take away: that of nobody when the row is new, or when a posture check is deleted. */
function revocationsOf(change: Change, hasMore: boolean): Revocation[] {
  const { id, number } = change
  const kind = scopeKinds[change.kind]
  if (!kind || (!isDeleted(change) && kind !== 'posture-check' && isNew(change))) return []
  switch (kind) {
    case 'service':
      return [{ kind, id, number, isPending: hasMore || !isDeleted(change) }]
    case 'posture-check':
      if (isDeleted(change)) return []
      return [
        { kind, id, number, isPending: true },
        // a create does not know which policies require the check
        { kind: 'everything', id: '', number, isPending: false },
      ]
    case 'policy':
      return [
        { kind, id, number, isPending: true },
        { kind, id: UNDETERMINED, number, isPending: true },
      ]
    default:
      return [{ kind, id, number, isPending: true }]
  }
}
