import { type Entity, kinds, referenceTo, timeText } from '@overlay/model'
import type { Context } from '@overlay/rpc'
import { idsByKind } from '../change-log/deleted-entities.js'
import { nameMember } from './joined-columns.js'
import { idsIn } from './references.js'
import type { AnyRow } from './row.js'
import type { Names } from './seams.js'

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
      const value = (row as unknown as Members)[name]
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
  const values = row as unknown as Members
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
