import { type BaseRow, type Entity, type Field, type RowOf, snake, type ValuesOf } from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import { countOfTable } from '../row-counts.js'

export type AnyRow = RowOf<Entity>
export type AnyValues = ValuesOf<Entity>

export const tableOf = ({ singular, table }: Entity): Sql => raw(table ?? snake(singular))

/** All rows of a kind that its schema keeps count of. */
export const wholeOf = (entity: Entity): Sql | undefined =>
  entity.counted && countOfTable(tableOf(entity).text)

/** A condition that leaves nothing out. */
export const isAll = (condition: Sql): boolean => condition.text === 'true'

export const columnOf = (name: string, { column }: Field): string => column ?? snake(name)

/** Every kind has them beside its own columns. */
const base = ['id', 'tags', 'is_system', 'created_at', 'updated_at']

const cache = new WeakMap<Entity, Sql>()

/** The columns of a kind, and no others: a migration may have added some that this build does not know. */
export function columnsOf(entity: Entity): Sql {
  const known = cache.get(entity)
  if (known) return known
  const own = Object.entries(entity.fields).map(([name, field]) => columnOf(name, field))
  const columns = raw([...base, ...own].join(', '))
  cache.set(entity, columns)
  return columns
}

/** A database row in the words of the definition. */
export function rowOf(entity: Entity, stored: QueryResultRow): AnyRow {
  const row: Record<string, unknown> = {
    id: stored.id,
    createdAt: stored.created_at,
    updatedAt: stored.updated_at,
    tags: stored.tags,
    isSystem: stored.is_system,
  }
  for (const [name, field] of Object.entries(entity.fields))
    row[name] = field.load(stored[columnOf(name, field)])
  return row as unknown as AnyRow
}

/** The row as followers and the audit see it: everything but secrets. */
export function plainOf(entity: Entity, row: AnyRow): Record<string, unknown> {
  const members = row as unknown as Record<string, unknown>
  const own = Object.entries(entity.fields).filter(([, { secret }]) => !secret)
  return {
    id: row.id,
    ...Object.fromEntries(own.map(([name]) => [name, members[name]])),
    tags: row.tags,
    isSystem: row.isSystem,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  }
}

const parameter = (field: Field, value: unknown): unknown => {
  const stored = field.store(value)
  // pg would write an array as a Postgres array and a date by the local clock; json columns want text
  return stored !== null && typeof stored === 'object' && !Array.isArray(stored) && !(stored instanceof Date)
    ? JSON.stringify(stored)
    : stored
}

export function insertSql(entity: Entity, id: string, values: AnyValues, tags: BaseRow['tags']): Sql {
  const own = Object.entries(entity.fields)
  const members = values as Record<string, unknown>
  return sql`
    insert into ${tableOf(entity)} (id, tags, ${raw(own.map(([name, field]) => columnOf(name, field)).join(', '))})
    values (${id}, ${JSON.stringify(tags)}, ${join(own.map(([name, field]) => sql`${parameter(field, members[name])}`))})
 returning ${columnsOf(entity)}`
}

export function updateSql(
  entity: Entity,
  id: string,
  values: AnyValues,
  tags: BaseRow['tags'],
  names: ReadonlySet<string>,
): Sql {
  const members = values as Record<string, unknown>
  const sets = Object.entries(entity.fields)
    .filter(([name]) => names.has(name))
    .map(([name, field]) => sql`${raw(columnOf(name, field))} = ${parameter(field, members[name])}`)
  return sql`
    update ${tableOf(entity)} set ${join([...sets, sql`tags = ${JSON.stringify(tags)}`, sql`updated_at = clock_timestamp()`])}
     where id = ${id}
 returning ${columnsOf(entity)}`
}
