import { identity, type RowOf, type ValuesOf } from '@overlay/model'
import { batchInserter, type ChangeLog } from '@overlay/platform/change-log'
import { columnsOf, columnValues, plainOf, plainOfNew, rowOf } from '@overlay/platform/kind-store'
import type { Db, Tx } from '@overlay/platform/postgres'
import { type Context, Fault, invalid, notFound, type Position } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'

type Values = ValuesOf<typeof identity>

export interface NewIdentity {
  readonly id: string
  readonly values: Values
  readonly tags: RowOf<typeof identity>['tags']
  /** What followers hear besides: an enrollment that is wanted, with its token, which the audit must not hold. */
  readonly payload: object
  readonly context: Context
}

/** Locks in the transaction what the row names in other schemas, or refuses. */
export type Hold = (tx: Tx) => Promise<void>

/**
 * Creates identities, those that wait together in one statement; one with `hold` in a transaction of its own. The
 * position when it is made, else a Fault.
 */
export function identityCreator(changeLog: ChangeLog): (one: NewIdentity, hold?: Hold) => Promise<Position> {
  const create = batchInserter(changeLog, identity.kind, insert)
  return async (one, hold) => {
    const { id, values, tags, payload, context } = one
    const columns = columnValues(identity, id, values, tags)
    const plain = plainOfNew(identity, id, values, tags)
    const position = await (hold
      ? createHolding(changeLog, one, columns, hold)
      : create({ id, columns, plain, payload, by: context }))
    if (position) return position
    const refusal = await reasonFor(changeLog.db, one)
    if (refusal) throw refusal
    return changeLog.head()
  }
}

async function createHolding(
  changeLog: ChangeLog,
  { id, payload, context }: NewIdentity,
  columns: object,
  hold: Hold,
): Promise<Position | undefined> {
  const { result, position } = await changeLog.write(context, async (tx) => {
    await hold(tx)
    const { rows } = await tx.query(
      sql`${insert(JSON.stringify([columns]))} returning ${columnsOf(identity)}`,
    )
    const changes = rows.map((row) => {
      const after = plainOf(identity, rowOf(identity, row))
      return { kind: identity.kind, id, before: null, after, payload: { ...after, ...payload, isNew: true } }
    })
    return { result: rows.length > 0, changes }
  })
  return result ? position : undefined
}

const insert = (list: string): Sql => sql`
  insert into identity (id, name, type, is_admin, role_attributes, external_id, auth_policy_id, app_data,
                        default_hosting_cost, default_hosting_precedence, service_hosting_costs,
                        service_hosting_precedences, enrollment, tags)
  select e.id, e.name, e.type, e.is_admin, e.role_attributes, e.external_id, e.auth_policy_id, e.app_data,
         e.default_hosting_cost, e.default_hosting_precedence, e.service_hosting_costs,
         e.service_hosting_precedences, e.enrollment, e.tags
    from jsonb_to_recordset(${list}::jsonb) as e (
           id text, name text, type text, is_admin boolean, role_attributes text[], external_id text,
           auth_policy_id text, app_data jsonb, default_hosting_cost integer, default_hosting_precedence text,
           service_hosting_costs jsonb, service_hosting_precedences jsonb, enrollment jsonb, tags jsonb)
    join auth_policy on auth_policy.id = e.auth_policy_id
      on conflict do nothing`

/** Why the statement left it out. Nothing: it is there, and only the answer of an earlier try was lost. */
async function reasonFor(db: Db, { id, values }: NewIdentity): Promise<Fault | undefined> {
  const { name, externalId, authPolicyId } = values
  const { rows } = await db.query<Record<'mine' | 'name' | 'externalId' | 'policy', boolean>>(sql`
    select exists (select from identity where id = ${id}) as mine,
           exists (select from identity where name = ${name}) as name,
           exists (select from identity where external_id = ${externalId}) as "externalId",
           exists (select from auth_policy where id = ${authPolicyId}) as policy`)
  const [found] = rows
  if (found?.mine) return undefined
  if (found && !found.policy) return notFound('authPolicy', authPolicyId)
  if (found?.name) return invalid('name', 'name must be unique', name)
  if (found?.externalId) return invalid('externalId', 'externalId must be unique', externalId)
  return new Fault('UNAVAILABLE') // whoever was in the way has gone meanwhile: to be asked for again
}
