import { type Entity, kinds } from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import type { Kind } from './kind.js'
import { type AnyRow, columnOf, columnsOf, rowOf, tableOf } from './row.js'

interface Shape {
  readonly columns: Sql
  /** Those that are no columns of the table. */
  readonly joined: readonly string[]
}

const shapes = new WeakMap<Kind, Shape>()

function shapeOf(kind: Kind): Shape {
  const known = shapes.get(kind)
  if (known) return known
  const { entity, seams } = kind
  const joined = new Map([...Object.entries(seams.joined ?? {}), ...namesOf(entity)])
  const named = [...joined].map(([name, value]) => sql`${value} as ${raw(`"${name}"`)}`)
  const shape = { columns: join([columnsOf(entity), ...named]), joined: [...joined.keys()] }
  shapes.set(kind, shape)
  return shape
}

/** All that an answer shows of a row and its own schema knows, so that a page is one statement. */
export const shownColumnsOf = (kind: Kind): Sql => shapeOf(kind).columns

/** A row that was read with these columns. */
export function shownRowOf(kind: Kind, stored: QueryResultRow): AnyRow {
  const row = rowOf(kind.entity, stored) as unknown as Record<string, unknown>
  for (const name of shapeOf(kind).joined) row[name] = stored[name]
  return row as unknown as AnyRow
}

/** The member that names the entity to which `field` refers, where that is of the same schema. */
export const nameOf = (field: string): string => `${field}.name`

const namesOf = (entity: Entity): [string, Sql][] =>
  Object.entries(entity.fields).flatMap(([name, field]) => {
    const target = field.ref === undefined ? undefined : kinds.get(field.ref)
    if (target?.owner !== entity.owner || !('name' in target.fields)) return []
    const id = raw(columnOf(name, field))
    return [
      [
        nameOf(name),
        sql`(select name from ${tableOf(target)} as named where named.id = ${tableOf(entity)}.${id})`,
      ],
    ]
  })
