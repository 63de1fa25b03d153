import { type Entity, kinds, linksOf, referenceTo, timeText } from '@overlay/model'
import type { Context } from '@overlay/rpc'
import type { AnyRow } from './row.js'
import type { Names } from './seams.js'

type Members = Record<string, unknown>
type NamesByKind = ReadonlyMap<string, ReadonlyMap<string, string>>

/** Rows in wire shape, without what the kind's view adds. Names are asked for once per kind and page. */
export async function render(
  entity: Entity,
  rows: readonly AnyRow[],
  names: Names,
  context: Context,
): Promise<Members[]> {
  const known = await namesFor(entity, rows, names, context)
  return rows.map((row) => wireOf(entity, row, known))
}

async function namesFor(
  entity: Entity,
  rows: readonly AnyRow[],
  names: Names,
  context: Context,
): Promise<NamesByKind> {
  const wanted = new Map<string, Set<string>>()
  const want = (kind: string, id: string) => {
    const ids = wanted.get(kind)
    if (ids) ids.add(id)
    else wanted.set(kind, new Set([id]))
  }
  for (const [name, { ref, rolesOf }] of Object.entries(entity.fields)) {
    for (const row of rows) {
      const value = (row as unknown as Members)[name]
      if (ref && value) want(ref, value as string)
      if (rolesOf && value) for (const id of idsIn(value as string[])) want(rolesOf, id)
    }
  }
  const found = [...wanted].map(async ([kind, ids]) => [kind, await names(kind, [...ids], context)] as const)
  return new Map(await Promise.all(found))
}

const idsIn = (roles: readonly string[]): string[] =>
  roles.filter((role) => role.startsWith('@')).map((role) => role.slice(1))

function wireOf(entity: Entity, row: AnyRow, names: NamesByKind): Members {
  const wire: Members = {
    _links: linksOf(entity, row.id, row as unknown as Members),
    createdAt: timeText(row.createdAt),
    id: row.id,
    tags: row.tags,
    updatedAt: timeText(row.updatedAt),
  }
  for (const [name, { ref, rolesOf, secret, hidden }] of Object.entries(entity.fields)) {
    if (secret || hidden) continue
    const value = (row as unknown as Members)[name]
    put(wire, name, value instanceof Date ? timeText(value) : value)
    if (ref && value) put(wire, name.replace(/Id$/, ''), reference(ref, value as string, names))
    if (rolesOf) wire[`${name}Display`] = display((value ?? []) as string[], names.get(rolesOf))
  }
  return wire
}

function put(wire: Members, name: string, value: unknown): void {
  const [first = '', ...rest] = name.split('.')
  if (rest.length === 0) wire[first] = value
  else {
    wire[first] ??= {}
    put(wire[first] as Members, rest.join('.'), value)
  }
}

function reference(kind: string, id: string, names: NamesByKind): object {
  const target = kinds.get(kind)
  // wire: who has no name is named by its id alone
  const name = target && !('name' in target.fields) ? undefined : names.get(kind)?.get(id)
  if (target) return referenceTo(target, id, name)
  return { _links: { self: { href: `./${kind}/${id}` } }, entity: kind, id, ...(name && { name }) }
}

/** wire: what cannot be named any more is left out. */
function display(roles: readonly string[], names: ReadonlyMap<string, string> | undefined): object[] {
  return roles.flatMap((role) => {
    if (!role.startsWith('@')) return [{ name: role, role }]
    const name = names?.get(role.slice(1))
    return name === undefined ? [] : [{ name: `@${name}`, role }]
  })
}
