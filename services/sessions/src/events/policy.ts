import type { Effects, Names } from '@overlay/platform'
import { type Change, ownContext } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { nameServices } from '../store/known-service.js'
import { endTerminators } from '../store/terminator.js'
import { type AskPolicy, endLost, endSessions } from './lost-access.js'

/** A session ends with its service, and when a policy or posture takes the service away; a terminator with its service. */
export const policyEffects = (policy: AskPolicy, names: Names): Effects => ({
  kinds: ['services', 'service-policies', 'posture-checks', 'posture-data'],

  async apply(tx, changes, upto) {
    const services = of('services', changes)
    const gone = services.filter(({ json }) => json.length === 0).map(({ id }) => id)
    const ended = [
      ...(await endSessions(tx, sql`service_id = any(${gone})`)),
      ...(await endTerminators(tx, sql`service_id = any(${gone})`)),
    ]
    await nameServices(tx, services)
    return [...ended, ...(await endLost(tx, policy, concernedBy(changes), { policy: upto }))]
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
    return [...ended, ...(await endLost(tx, policy, sql`true`, { policy: upto }))]
  },
})

const of = (kind: string, changes: readonly Change[]): Change[] =>
  changes.filter((change) => change.kind === kind)

/** A policy or a posture check may take anything from anybody. */
function concernedBy(changes: readonly Change[]): Sql {
  const services = of('services', changes).map(({ id }) => id)
  const identities = of('posture-data', changes).map(({ id }) => id)
  if (services.length + identities.length < changes.length) return sql`true`
  return sql`(service_id = any(${services}) or identity_id = any(${identities}))`
}
