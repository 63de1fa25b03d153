import { type Entity, kinds } from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { raw, type Sql } from 'sql-template-tag'
import type { Kind } from './kind.js'
import { type AnyRow, columnOf, rowOf, tableOf } from './row.js'

interface Shape {
  /** Named. */
  readonly joined: readonly Sql[]
  readonly names: readonly string[]
}

const shapes = new WeakMap<Kind, Shape>()

function shapeOf(kind: Kind): Shape {
  const known = shapes.get(kind)
  if (known) return known
  const { entity, seams } = kind
  const all = new Map([...Object.entries(seams.joined ?? {}), ...namesOf(entity)])
  const joined = [...all].map(([name, value]) => sql`${value} as ${raw(`"${name}"`)}`)
  const shape = { joined, names: [...all.keys()] }
  shapes.set(kind, shape)
  return shape
}

/** What answers show of a row and other tables of its schema know, so that a page is one statement. */
export const joinedColumnsOf = (kind: Kind): readonly Sql[] => shapeOf(kind).joined

/** A row that was read with its columns and these. */
export function joinedRowOf(kind: Kind, stored: QueryResultRow): AnyRow {
  const row = rowOf(kind.entity, stored) as unknown as Record<string, unknown>
  for (const name of shapeOf(kind).names) row[name] = stored[name]
  return row as unknown as AnyRow
}

/** The member that names the entity to which `field` refers, where that is of the same schema. */
export const nameMember = (field: string): string => `${field}.name`

const namesOf = (entity: Entity): [string, Sql][] =>
  Object.entries(entity.fields).flatMap(([name, field]) => {
    const target = field.ref === undefined ? undefined : kinds.get(field.ref)
    if (target?.owner !== entity.owner || !('name' in target.fields)) return []
    const id = raw(columnOf(name, field))
    return [
      [
        nameMember(name),
        sql`(select name from ${tableOf(target)} as named where named.id = ${tableOf(entity)}.${id})`,
      ],
    ]
  })
