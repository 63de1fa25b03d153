import { type Entity, kinds, memoized } from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { raw, type Sql } from 'sql-template-tag'
import type { Kind } from './kind.js'
import { renderingOf } from './rendering.js'
import { type AnyRow, columnOf, tableOf } from './row.js'

/** What reads select besides text: the values that rendering and the view need. */
export interface LoadedColumns {
  readonly columns: readonly Sql[]
  /** A row that is read with these columns. Other members are undefined. */
  rowOf(stored: QueryResultRow): AnyRow
}

export const loadedColumnsOf = memoized((kind: Kind): LoadedColumns => {
  const { entity, seams } = kind
  const wanted = new Set<string>(renderingOf(kind).loaded)
  const isWhole = seams.view !== undefined && seams.viewed === undefined
  const isWanted = (name: string): boolean =>
    isWhole || wanted.has(name) || seams.viewed?.includes(name) === true
  const own = [
    ...Object.entries(base).map(([name, column]) => ({ name, column, load: (stored: unknown) => stored })),
    ...Object.entries(entity.fields).map(([name, one]) => ({
      name,
      column: columnOf(name, one),
      load: one.load,
    })),
  ].filter(({ name }) => isWanted(name))
  const joined = [
    ...Object.entries(seams.joined ?? {}).filter(([name]) => isWanted(name)),
    ...namesOf(entity).filter(([, , field]) => isWanted(field)),
  ]
  return {
    columns: [
      ...own.map(({ column }) => raw(column)),
      ...joined.map(([name, value]) => sql`${value} as ${raw(`"${name}"`)}`),
    ],
    rowOf(stored) {
      const row: Record<string, unknown> = {}
      for (const { name, column, load } of own) row[name] = load(stored[column])
      for (const [name] of joined) row[name] = stored[name]
      return row as unknown as AnyRow
    },
  }
})

const base = {
  id: 'id',
  tags: 'tags',
  isSystem: 'is_system',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
}

/** The member with the name of the entity to which `field` refers, where it is in the same schema. */
export const nameMember = (field: string): string => `${field}.name`

const namesOf = (entity: Entity): [member: string, value: Sql, field: string][] =>
  Object.entries(entity.fields).flatMap(([name, field]) => {
    const target = field.ref === undefined ? undefined : kinds.get(field.ref)
    if (target?.owner !== entity.owner || !('name' in target.fields)) return []
    const id = raw(columnOf(name, field))
    return [
      [
        nameMember(name),
        sql`(select name from ${tableOf(target)} as target where target.id = ${tableOf(entity)}.${id})`,
        name,
      ],
    ]
  })
