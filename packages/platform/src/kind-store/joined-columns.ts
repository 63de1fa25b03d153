import { type Entity, kinds, memoized } from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { raw, type Sql } from 'sql-template-tag'
import type { Kind } from './kind.js'
import { type AnyRow, columnOf, rowOf, tableOf } from './row.js'

const shapeOf = memoized(({ entity, seams }: Kind) => {
  const all = new Map([...Object.entries(seams.joined ?? {}), ...namesOf(entity)])
  const joined = [...all].map(([name, value]) => sql`${value} as ${raw(`"${name}"`)}`)
  return { joined, names: [...all.keys()] }
})

/** Values of other tables of the schema that answers show, so that a page is one statement. */
export const joinedColumnsOf = (kind: Kind): readonly Sql[] => shapeOf(kind).joined

/** A row read with its own and the joined columns. */
export function joinedRowOf(kind: Kind, stored: QueryResultRow): AnyRow {
  const row = rowOf(kind.entity, stored) as unknown as Record<string, unknown>
  for (const name of shapeOf(kind).names) row[name] = stored[name]
  return row as unknown as AnyRow
}

/** The member with the name of the entity to which `field` refers, where it is in the same schema. */
export const nameMember = (field: string): string => `${field}.name`

const namesOf = (entity: Entity): [string, Sql][] =>
  Object.entries(entity.fields).flatMap(([name, field]) => {
    const target = field.ref === undefined ? undefined : kinds.get(field.ref)
    if (target?.owner !== entity.owner || !('name' in target.fields)) return []
    const id = raw(columnOf(name, field))
    return [
      [
        nameMember(name),
        sql`(select name from ${tableOf(target)} as target where target.id = ${tableOf(entity)}.${id})`,
      ],
    ]
  })
