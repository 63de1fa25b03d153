import type { Entity, Fields, PublishedNames, Variants, View } from './types.js'

/** Members without defaults. */
type Required = 'kind' | 'singular' | 'owner' | 'fields'
type Declaration<F extends Fields, V extends View, W extends Variants | undefined> = Pick<
  Entity<F, V, W>,
  Required
> &
  Partial<Omit<Entity<F, V, W>, Required | 'published'>> & { readonly published?: Partial<PublishedNames> }

/** Fills in defaults, and checks at import what the type system cannot. */
export function defineEntity<
  const F extends Fields,
  const V extends View = object,
  const W extends Variants | undefined = undefined,
>(declaration: Declaration<F, V, W>): Entity<F, V, W> {
  const { kind, singular, called = singular, fields, links = linksOfRoles(fields), published } = declaration
  for (const { by } of Object.values(links)) {
    if (by !== undefined && !(by in fields)) throw new Error(`${kind}: no field '${by}'`)
  }
  const { title = singular } = published ?? {}
  const plural = pluralOf(called)
  return {
    called,
    calledOnDelete: called,
    plural,
    ids: 'base62',
    followed: false,
    shows: {} as V,
    variants: undefined as W,
    listType: 'application/json',
    listParameters: [],
    summaryNames: [plural],
    links,
    ...declaration,
    published: { title, body: title, ...published },
  }
}

/** The default: a linked list for each list of roles. */
const linksOfRoles = (fields: Fields): Entity['links'] =>
  Object.fromEntries(
    Object.entries(fields)
      .flatMap(([by, { rolesOf }]) =>
        rolesOf === undefined ? [] : [[rolesOf, { to: rolesOf, by }] as const],
      )
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )

const pluralOf = (word: string): string => (word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`)
