import { identity, type RowOf, type ValuesOf } from '@overlay/model'
import { type Context, Fault, invalid, notFound, type Position } from '@overlay/rpc'
import { batchInserter, type ChangeLog } from '@overlay/store/change-log'
import { columnValues, insertListSql, insertRows, plainOfNew } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

export interface NewIdentity {
  readonly id: string
  readonly values: ValuesOf<typeof identity>
  readonly tags: RowOf<typeof identity>['tags']
  /** Further members for followers: the enrollment to grant, with its token, which the audit must not contain. */
  readonly payload: object
  readonly context: Context
}

/** Locks in the transaction what the row names in other schemas, or refuses. */
export type LockReferences = (tx: Tx) => Promise<void>

/**
 * Creates identities: concurrent requests share one statement; one with `lock` has a transaction of its own. Answers the
 * position, or throws a Fault.
 */
export function identityInserter(
  changeLog: ChangeLog,
): (row: NewIdentity, lock?: LockReferences) => Promise<Position> {
  const insert = batchInserter(changeLog, identity.kind, insertSome)
  return async (row, lock) => {
    const { id, values, tags, payload, context } = row
    const columns = columnValues(identity, id, values, tags)
    const plain = plainOfNew(identity, id, values, tags)
    const position = await (lock
      ? insertLocked(changeLog, row, columns, lock)
      : insert({ id, columns, plain, payload, by: context }))
    if (position) return position
    const refusal = await refusalOf(changeLog.db, row)
    if (refusal) throw refusal
    return changeLog.head()
  }
}

async function insertLocked(
  changeLog: ChangeLog,
  { payload, context }: NewIdentity,
  columns: object,
  lock: LockReferences,
): Promise<Position | undefined> {
  const { result, position } = await changeLog.write(context, async (tx) => {
    await lock(tx)
    const inserted = await insertRows(tx, identity, insertSome(JSON.stringify([columns])))
    const changes = inserted.map((change) => ({
      ...change,
      payload: { ...change.payload, ...payload, isNew: true },
    }))
    return { result: changes.length > 0, changes }
  })
  return result ? position : undefined
}

const insertSome = (list: string): Sql =>
  insertListSql(
    identity,
    list,
    sql`join auth_policy on auth_policy.id = entry.auth_policy_id on conflict do nothing`,
  )

/** Why the statement left the row out. Undefined: the row exists, and only the answer of an earlier try was lost. */
async function refusalOf(db: Db, { id, values }: NewIdentity): Promise<Fault | undefined> {
  const { name, externalId, authPolicyId } = values
  const { rows } = await db.query<Record<'id' | 'name' | 'externalId' | 'policy', boolean>>(sql`
    select exists (select from identity where id = ${id}) as id,
           exists (select from identity where name = ${name})
           or exists (select from reserved_name where name = ${name}) as name,
           exists (select from identity where external_id = ${externalId}) as "externalId",
           exists (select from auth_policy where id = ${authPolicyId}) as policy`)
  const [exists] = rows
  if (exists?.id) return undefined
  if (exists && !exists.policy) return notFound('authPolicy', authPolicyId)
  if (exists?.name) return invalid('name', 'name must be unique', name)
  if (exists?.externalId) return invalid('externalId', 'externalId must be unique', externalId)
  return new Fault('UNAVAILABLE') // the conflicting row has been deleted meanwhile: the caller may retry
}
