import { identity, identityType, type RowOf, referenceTo, type ValuesOf } from '@overlay/model'
import { type Context, Fault, invalid, notFound, type Position } from '@overlay/rpc'
import { batchInserter, type ChangeLog } from '@overlay/store/change-log'
import {
  allPages,
  columnsOf,
  columnValues,
  insertListSql,
  insertRows,
  jsonFlag,
  jsonTime,
  markedJson,
  plainOf,
  plainOfNew,
  rowOf,
  tableOf,
} from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { raw, type Sql } from 'sql-template-tag'
import { promisedEnrollment } from '../domain/requested-enrollment.js'
import { ENROLLMENT_PROMISED } from '../limits.js'
import { isConnected } from './identity-state.js'

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

type Stored = Parameters<typeof rowOf>[1]

/**
 * The rows of identities for followers that load all of them. They contain the enrollment with which an identity was
 * created: pki may have missed the change that requested it.
 */
export const identityLoader = (db: Db) =>
  async function* (ids?: readonly string[]): AsyncIterable<{ readonly id: string; readonly json: object }> {
    const which = ids ? sql`id = any(${ids})` : sql`true`
    const all = allPages<Stored>((last, limit) =>
      db.query(sql`
        select ${columnsOf(identity)}, created_at > now() - ${ENROLLMENT_PROMISED} as "mayWait" from ${tableOf(identity)}
         where id > ${last?.id ?? ''} and ${which} order by id limit ${limit}`),
    )
    for await (const stored of all) {
      const row = rowOf(identity, stored)
      const promised = stored.mayWait
        ? promisedEnrollment(row.enrollment as Parameters<typeof promisedEnrollment>[0])
        : undefined
      const json = plainOf(identity, row)
      yield { id: row.id, json: promised ? { ...json, enrollmentPromised: promised } : json }
    }
  }

const TYPE = '%'
const typeReference = JSON.stringify(referenceTo(identityType, TYPE, TYPE)) // types are words

/** As the rule of domain/disabled.ts. */
const isDisabled = sql`
  (identity.disabled_at is not null and (identity.disabled_until is null or identity.disabled_until > now()))`

const optionalTime = (column: Sql): Sql => sql`case when ${column} is not null then ${jsonTime(column)} end`

const ofAuthenticator = sql`
  '"' || a.method || '":{"id":' || to_json(a.id)
      || case a.method when 'updb' then ',"username":' || coalesce(to_json(a.username)::text, 'null')
                       else ',"fingerprint":' || coalesce(to_json(a.fingerprint)::text, 'null') end || '}'`
/** Of two with the same method, the parser keeps the later one. */
const authenticators = markedJson(
  sql`'{' || coalesce(string_agg(${ofAuthenticator}, ',' order by a.created_at, a.id), '') || '}'`,
  sql`count(*) > 1`,
)

/** Members that identities show of other tables and of hidden columns, as JSON text over the table. null: left out. */
export const identityMembers = {
  type: sql`replace(${raw(`'${typeReference}'`)}, ${raw(`'${TYPE}'`)}, identity.type)`,
  typeId: sql`to_json(identity.type)::text`,
  disabled: jsonFlag(isDisabled),
  disabledAt: optionalTime(sql`identity.disabled_at`),
  disabledUntil: optionalTime(sql`identity.disabled_until`),
  isMfaEnabled: jsonFlag(sql`(select f.is_verified from second_factor f where f.identity_id = identity.id)`),
  // not exists(): the planner would read all sessions once
  hasApiSession: jsonFlag(sql`
    (select true from api_session s where s.identity_id = identity.id and s.client_id is null limit 1)`),
  hasEdgeRouterConnection: jsonFlag(isConnected),
  authenticators: sql`(select ${authenticators} from authenticator a where a.identity_id = identity.id)`,
} satisfies Readonly<Record<string, Sql>>
