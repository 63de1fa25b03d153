import { type Entity, kinds, memoized, referenceTo, timeText } from '@overlay/model'
import type { Context } from '@overlay/rpc'
import type { QueryResultRow } from 'pg'
import sql, { raw, type Sql } from 'sql-template-tag'
import { idsByKind } from '../change-log/deleted-entities.js'
import type { Kind } from './kind.js'
import { idsIn } from './references.js'
import { renderingOf } from './rendering.js'
import { type AnyRow, columnOf, membersIn, tableOf } from './row.js'
import type { Names } from './seams.js'

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

type Members = Record<string, unknown>
export type NamesByKind = ReadonlyMap<string, ReadonlyMap<string, string>>

/** The names that members of these fields show. Asks once per kind and page. */
export async function namesFor(
  { fields }: Entity,
  names: readonly string[],
  rows: readonly AnyRow[],
  lookUp: Names,
  context: Context,
): Promise<NamesByKind> {
  const references: { readonly kind: string; readonly id: string }[] = []
  for (const name of names) {
    const { ref, rolesOf } = fields[name] ?? {}
    for (const row of rows) {
      const value = membersIn(row)[name]
      if (ref && value && !(nameMember(name) in row)) references.push({ kind: ref, id: value as string })
      if (rolesOf && value) for (const id of idsIn(value as string[])) references.push({ kind: rolesOf, id })
    }
  }
  if (references.length === 0) return nothing
  const lookUps = [...idsByKind(references)].map(
    async ([kind, ids]) => [kind, await lookUp(kind, [...ids], context)] as const,
  )
  return new Map(await Promise.all(lookUps))
}

const nothing: NamesByKind = new Map()

/** Some members of a row in wire shape, by their fields. */
export function membersOf(
  { fields }: Entity,
  names: readonly string[],
  row: AnyRow,
  namesByKind: NamesByKind,
): Members {
  const values = membersIn(row)
  const wire: Members = {}
  for (const name of names) {
    const { ref, rolesOf } = fields[name] ?? {}
    const value = values[name]
    put(wire, name, value instanceof Date ? timeText(value) : value)
    if (ref && value) {
      const id = value as string
      const targetName = values[nameMember(name)] ?? namesByKind.get(ref)?.get(id)
      put(wire, name.replace(/Id$/, ''), reference(ref, id, targetName as string | undefined))
    }
    if (rolesOf) wire[`${name}Display`] = display((value ?? []) as string[], namesByKind.get(rolesOf))
  }
  return wire
}

/** A name with dots is a member of a member. */
function put(wire: Members, name: string, value: unknown): void {
  const dot = name.indexOf('.')
  if (dot < 0) wire[name] = value
  else {
    const first = name.slice(0, dot)
    wire[first] ??= {}
    put(wire[first] as Members, name.slice(dot + 1), value)
  }
}

function reference(kind: string, id: string, storedName: string | undefined): object {
  const target = kinds.get(kind)
  // wire: an entity without a name is shown by its id alone
  const name = target && !('name' in target.fields) ? undefined : storedName
  if (target) return referenceTo(target, id, name)
  return { _links: { self: { href: `./${kind}/${id}` } }, entity: kind, id, ...(name && { name }) }
}

/** wire: entities that no longer exist are left out. */
function display(roles: readonly string[], names: ReadonlyMap<string, string> | undefined): object[] {
  return roles.flatMap((role) => {
    if (!role.startsWith('@')) return [{ name: role, role }]
    const name = names?.get(role.slice(1))
    return name === undefined ? [] : [{ name: `@${name}`, role }]
  })
}
