import type { Entity } from '@overlay/model'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import { type Moment, SLOTS } from '../change-log/deleted-entities.js'
import { textsOfAnyLength } from '../postgres/texts-of-any-length.js'
import { allOf, columnOf, insertListSql, tableOf } from './row.js'
import { versionOf } from './seen-rows.js'
import type { WriteRequest } from './write-request.js'

/** A row of this schema that the written row must not lose. */
export interface Referred {
  readonly kind: string
  readonly referred: string
  /** Undefined: any. */
  readonly version: string | undefined
}

/** An entity of another schema that the written row names. */
export interface ForeignReference {
  readonly kind: string
  readonly referred: string
  /** Its schema. */
  readonly owner: string
  /** Before its owner was asked whether it exists. */
  readonly moment: Moment
}

/** A row in the list of a statement. */
export interface RowInList {
  readonly id: string
  /** Of the row that is changed or deleted. */
  readonly version: string | undefined
  /** Its columns, as JSON; empty: it is deleted. */
  readonly columns: string
  readonly refers: readonly Referred[]
  readonly foreign: readonly ForeignReference[]
}

interface Shape {
  readonly entity: Entity
  readonly operation: WriteRequest['operation']
  /** Without values. */
  readonly scope: Sql | undefined
  readonly isUsed: Sql | undefined
  /** The kinds to which rows of the list refer. */
  readonly referred: readonly Entity[]
  /** True: rows of the list name entities of other schemas. */
  readonly isForeign: boolean
}

/**
 * Common table expressions for `batchWriter`. Rows are left out that have changed since their version, that somebody has
 * locked, or whose references are missing, changed or locked. Locks are taken in the order of `references.ts`. No lock
 * of a row is waited for, so a row that is locked delays no other.
 */
export function writeStatement(shape: Shape): (list: readonly RowInList[]) => Sql {
  const { entity, operation, scope, isUsed, referred, isForeign } = shape
  const table = tableOf(entity)
  const isKept = allOf([
    referred.length > 0 ? sql`entry.id not in (select id from missing)` : undefined,
    isForeign ? sql`entry.id not in (select id from lost)` : undefined,
  ])
  // the locks that consumers take come before those of rows
  const inOrder = isForeign ? sql`(select count(*) from lost) >= 0` : sql`true`
  const sets = raw(
    [...Object.entries(entity.fields).map(([name, field]) => columnOf(name, field)), 'tags']
      .map((column) => `${column} = entry.${column}`)
      .join(', '),
  )

  // the planner takes a list for long, and would read a table of some thousand rows completely
  const among = (list: readonly RowInList[]): Sql =>
    sql`${table}.id = any(${textsOfAnyLength(list.map(({ id }) => id))}::text[])`

  const locked = (list: readonly RowInList[]): Sql => sql`
         locked as materialized (
         select ${table}.id
           from ${table}
           join jsonb_to_recordset(${versionsIn(list)}::jsonb) as entry (id text, version text) using (id)
          where ${allOf([inOrder, among(list), sql`${versionOf(table)} = entry.version`, scope])}
          order by ${table}.id for update of ${table} skip locked)`

  const written = (list: readonly RowInList[]): Sql => {
    switch (operation) {
      case 'create':
        // in one order: two statements that insert the same names wait for each other only once
        return sql`
         written as (${insertListSql(entity, columnsIn(list), sql`where ${isKept} order by ${orderOf(entity)} on conflict do nothing`)}
         returning id, created_at, updated_at, ${versionOf(table)} as version)`
      case 'update':
        return sql`${locked(list)},
         written as (
         update ${table} set ${sets}, updated_at = clock_timestamp()
           from jsonb_populate_recordset(null::${table}, ${columnsIn(list)}::jsonb) as entry
           join locked using (id)
          where ${allOf([sql`${table}.id = entry.id`, among(list), isKept])}
      returning ${table}.id, ${table}.created_at, ${table}.updated_at, ${versionOf(table)} as version)`
      case 'delete':
        return sql`${locked(list)},
         free as materialized (select id from locked where not ${isUsed ?? sql`false`}),
         written as (
         delete from ${table} using free where ${table}.id = free.id and ${among(list)}
      returning ${table}.id, null::timestamptz as created_at, null::timestamptz as updated_at, null::text as version)`
    }
  }

  return (list) => {
    const lost = isForeign ? [lockedEntities(list)] : []
    const missing = referred.length > 0 ? [lockedReferences(referred, list, inOrder)] : []
    return join([...lost, ...missing, written(list)])
  }
}

const columnsIn = (list: readonly RowInList[]): string => `[${list.map(({ columns }) => columns).join()}]`

const versionsIn = (list: readonly RowInList[]): string =>
  JSON.stringify(list.map(({ id, version }) => ({ id, version })))

/** By the first unique member. */
function orderOf({ fields }: Entity): Sql {
  const unique = Object.entries(fields).find(([, field]) => field.unique)
  return raw(`entry.${unique ? columnOf(...unique) : 'id'}`)
}

/**
 * Locks the entities of other schemas, and waits for consumers that delete them. `lost` has the rows of the list that
 * must be left out.
 */
function lockedEntities(list: readonly RowInList[]): Sql {
  const references = list.flatMap(({ id, foreign }) => foreign.map((one) => ({ id, ...one })))
  return sql`
         lost as materialized (
         select id from lost_references(${JSON.stringify(references)}::jsonb, ${SLOTS}) as id)`
}

/** Locks references as a transaction would. `missing` has the rows of the list that must be left out. */
function lockedReferences(kinds: readonly Entity[], list: readonly RowInList[], inOrder: Sql): Sql {
  const references = list.flatMap(({ id, refers }) => refers.map((one) => ({ id, ...one })))
  const locks = kinds.map(
    (entity, i) => sql`
         locked_${raw(`${i}`)} as materialized (
         select id, ${versionOf(tableOf(entity))} as version from ${tableOf(entity)}
          where ${allOf([inOrder, sql`id in (select referred from reference where kind = ${entity.kind})`])}
          order by id for key share skip locked)`,
  )
  const all = kinds.map(
    (entity, i) => sql`select ${entity.kind} as kind, id, version from locked_${raw(`${i}`)}`,
  )
  return sql`
         reference as materialized (
         select * from jsonb_to_recordset(${JSON.stringify(references)}::jsonb)
           as reference (id text, kind text, referred text, version text)),
         ${join(locks)},
         missing as materialized (
         select reference.id
           from reference
           left join (${join(all, ' union all ')}) as lock
             on lock.kind = reference.kind and lock.id = reference.referred
          where lock.id is null or reference.version <> lock.version)`
}
