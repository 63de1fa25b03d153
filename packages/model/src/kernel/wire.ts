import type { Entity, Link } from './types.js'

/**
 * `_links` of an entity: itself and its listed collections. wire: `./kind/id`, relative to the API's root at any depth.
 * `row` has the ids of links to one other entity; without it they are the fallbacks of their members.
 */
export function linksOf(
  { kind, links, fields }: Entity,
  id: string,
  row: Readonly<Record<string, unknown>> = {},
): Record<string, { href: string }> {
  const self = `./${kind}/${id}`
  const all: Record<string, { href: string }> = { self: { href: self } }
  for (const name in links) {
    const { to, at, unlisted } = links[name] as Link
    if (unlisted) continue
    all[name] = { href: at === undefined ? `${self}/${name}` : `./${to}/${row[at] ?? fields[at]?.fallback}` }
  }
  return all
}

/** How one entity names another. wire: without `name` if the entity has none. */
export interface Reference {
  readonly _links: Readonly<Record<string, { href: string }>>
  readonly entity: string
  readonly id: string
  readonly name?: string
}

export function referenceTo(
  entity: Entity,
  id: string,
  name?: string,
  row?: Readonly<Record<string, unknown>>,
): Reference {
  return { _links: linksOf(entity, id, row), entity: entity.kind, id, ...(name !== undefined && { name }) }
}

/** wire: three digits of a second, always UTC. */
export const timeText = (time: Date): string => time.toISOString()

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Secrets of sessions are UUIDs: no other text can be one. */
export const isUuid = (text: string): boolean => UUID.test(text)

/** The member of a document at a path: 'a.b' is member b of the object a. */
export function memberAt(value: unknown, path: string): unknown {
  let member = value
  for (const name of path.split('.')) {
    if (member === null || typeof member !== 'object') return undefined
    member = (member as Readonly<Record<string, unknown>>)[name]
  }
  return member
}
