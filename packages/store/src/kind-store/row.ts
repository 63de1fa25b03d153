import {
  type BaseRow,
  type Entity,
  type Field,
  memoized,
  type RowOf,
  snake,
  type ValuesOf,
} from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import { countOfTable } from '../postgres/row-counts.js'

export type AnyRow = RowOf<Entity>
export type AnyValues = ValuesOf<Entity>

export const tableOf = ({ singular, table }: Entity): Sql => raw(table ?? snake(singular))

/** The number of rows of a kind, where its schema counts them. */
export const wholeOf = (entity: Entity): Sql | undefined =>
  entity.counted && countOfTable(tableOf(entity).text)

/** The number of rows that match. Uses the count of the schema where there is one and the condition matches all. */
export const numberOf = (from: Sql, condition: Sql, whole: Sql | undefined): Sql =>
  whole && isAll(condition) ? whole : sql`(select count(*) from ${from} where ${condition})`

export function allOf(conditions: readonly (Sql | undefined)[]): Sql {
  const set = conditions.filter((condition) => condition !== undefined && !isAll(condition))
  return set.length > 0 ? join(set, ' and ') : sql`true`
}

/** True when the condition matches all rows. */
export const isAll = (condition: Sql): boolean => condition.text === 'true'

export const columnOf = (name: string, { column }: Field): string => column ?? snake(name)

/** The columns that all kinds have. */
const base = ['id', 'tags', 'is_system', 'created_at', 'updated_at']

/** The columns of a kind by name: a later migration may have added others. */
export const columnsOf = memoized((entity: Entity): Sql => raw(columnNamesOf(entity).join(', ')))

/** The same, for statements in which other tables have these names, too. */
export const qualifiedColumnsOf = memoized(
  (entity: Entity): Sql =>
    raw(
      columnNamesOf(entity)
        .map((name) => `${tableOf(entity).text}.${name}`)
        .join(', '),
    ),
)

const columnNamesOf = ({ fields }: Entity): readonly string[] => [
  ...base,
  ...Object.entries(fields).map(([name, field]) => columnOf(name, field)),
]

/** The members of a row by their names. */
export const membersIn = (row: object): Readonly<Record<string, unknown>> =>
  row as Readonly<Record<string, unknown>>

/** A database row with the names of the definition. */
export function rowOf(entity: Entity, stored: QueryResultRow): AnyRow {
  const row: Record<string, unknown> = {
    id: stored.id,
    createdAt: stored.created_at,
    updatedAt: stored.updated_at,
    tags: stored.tags,
    isSystem: stored.is_system,
  }
  for (const { name, field, column } of ownFieldsOf(entity)) row[name] = field.load(stored[column])
  return row as unknown as AnyRow
}

/** The row for followers and the audit, without secrets. */
export function plainOf(entity: Entity, row: AnyRow): Record<string, unknown> {
  const members = membersIn(row)
  const plain: Record<string, unknown> = { id: row.id }
  for (const { name, field } of ownFieldsOf(entity)) if (!field.secret) plain[name] = members[name]
  const { tags, isSystem, createdAt, updatedAt } = row
  return { ...plain, tags, isSystem, createdAt, updatedAt }
}

/** The same for a row to be inserted. The database sets its times. */
export function plainOfNew(
  entity: Entity,
  id: string,
  values: object,
  tags: BaseRow['tags'],
): Record<string, unknown> {
  const plain: Record<string, unknown> = { id }
  for (const { name, field } of ownFieldsOf(entity))
    if (!field.secret) plain[name] = field.load(storedValue(field, name, values))
  plain.tags = tags
  plain.isSystem = false
  return plain
}

/** A row by its columns, for statements that insert many from a JSON list. */
export function columnValues(
  entity: Entity,
  id: string,
  values: object,
  tags: BaseRow['tags'],
): Record<string, unknown> {
  const columns: Record<string, unknown> = { id, tags }
  for (const { name, field, column } of ownFieldsOf(entity))
    columns[column] = storedValue(field, name, values)
  return columns
}

/** A member of a new row as it is stored. An absent one gets its fallback. */
function storedValue(field: Field, name: string, values: object): unknown {
  const value = membersIn(values)[name]
  return field.store(value === undefined ? field.fallback : value)
}

const ownFieldsOf = memoized(({ fields }: Entity) =>
  Object.entries(fields).map(([name, field]) => ({ name, field, column: columnOf(name, field) })),
)

/** The columns that an insert writes; the others get their defaults. */
const listColumnsOf = memoized((entity: Entity) => {
  const names = ['id', 'tags', ...Object.entries(entity.fields).map(([name, field]) => columnOf(name, field))]
  return { names: raw(names.join(', ')), values: raw(names.map((name) => `entry.${name}`).join(', ')) }
})

/**
 * Inserts rows of a kind from a JSON list of their `columnValues`. `rest` follows the list, which is named `entry`: joins,
 * conditions and conflicts. The text is the same for every list, so that the statement stays prepared.
 */
export function insertListSql(entity: Entity, list: string, rest: Sql): Sql {
  const [table, { names, values }] = [tableOf(entity), listColumnsOf(entity)]
  return sql`
  insert into ${table} (${names})
  select ${values} from jsonb_populate_recordset(null::${table}, ${list}::jsonb) as entry ${rest}`
}
