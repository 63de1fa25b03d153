import type { RowChange, Tx } from '@overlay/platform'
import {
  Access,
  type Context,
  type Methods,
  ownContext,
  type PolicyServiceService,
  type Positions,
} from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'

export type AskPolicy = Pick<Methods<PolicyServiceService>, 'findLost'>

interface Held {
  readonly apiSessionId: string
  readonly identityId: string
  readonly serviceId: string
  readonly type: 'Dial' | 'Bind'
}

const PER_CALL = 1000

/** Ends the sessions among these whose access exists no more, as policy sees it at the positions or later. */
export async function endLost(
  tx: Tx,
  policy: AskPolicy,
  which: Sql,
  positions: Positions,
): Promise<RowChange[]> {
  const { rows } = await tx.query<Held>(sql`
    select api_session_id as "apiSessionId", identity_id as "identityId", service_id as "serviceId", type
      from session where ${which}`)
  const context = { ...ownContext(AbortSignal.timeout(30_000)), positions }
  const ended: RowChange[] = []
  for (let from = 0; from < rows.length; from += PER_CALL) {
    const lost = await lostOf(policy, rows.slice(from, from + PER_CALL), context)
    if (lost.length > 0) ended.push(...(await endHeld(tx, lost)))
  }
  return ended
}

async function lostOf(policy: AskPolicy, rows: readonly Held[], context: Context): Promise<Held[]> {
  const held = rows.map(({ apiSessionId, identityId, serviceId, type }) => ({
    apiSessionId,
    identityId,
    serviceId,
    access: type === 'Dial' ? Access.ACCESS_DIAL : Access.ACCESS_BIND,
  }))
  const { lost } = await policy.findLost({ held }, context)
  return rows.filter((_, i) => lost[i])
}

function endHeld(tx: Tx, held: readonly Held[]): Promise<RowChange[]> {
  return endSessions(
    tx,
    sql`(api_session_id, service_id, type) in (
        select * from unnest(${held.map(({ apiSessionId }) => apiSessionId)}::text[],
                             ${held.map(({ serviceId }) => serviceId)}::text[],
                             ${held.map(({ type }) => type)}::text[]))`,
  )
}

/** Ends them, and tells routers and the audit. */
export async function endSessions(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query<Held & { id: string }>(sql`
    delete from session where ${which}
    returning id, identity_id as "identityId", service_id as "serviceId", type, api_session_id as "apiSessionId"`)
  return rows.map(({ id, ...before }) => ({ kind: 'sessions', id, before, after: null, told: null }))
}
