import type { Entity, Fields, PublishedNames, Variants, View } from './types.js'

/** Members with defaults. */
type Optional =
  | 'aliases'
  | 'called'
  | 'calledOnDelete'
  | 'plural'
  | 'ids'
  | 'followed'
  | 'shows'
  | 'variants'
  | 'listType'
  | 'listParameters'
  | 'summaryNames'
type Declaration<F extends Fields, V extends View, W extends Variants | undefined> = Omit<
  Entity<F, V, W>,
  Optional | 'published'
> &
  Partial<Pick<Entity<F, V, W>, Optional>> & { readonly published?: Partial<PublishedNames> }

/** Fills in defaults, and checks at import what the type system cannot. */
export function defineEntity<
  const F extends Fields,
  const V extends View = object,
  const W extends Variants | undefined = undefined,
>(declaration: Declaration<F, V, W>): Entity<F, V, W> {
  const { kind, singular, called = singular, fields, links, published } = declaration
  for (const { by } of Object.values(links)) {
    if (by !== undefined && !(by in fields)) throw new Error(`${kind}: no field '${by}'`)
  }
  const { title = singular } = published ?? {}
  const plural = pluralOf(called)
  return {
    aliases: [],
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
    ...declaration,
    published: { title, body: title, ...published },
  }
}

const pluralOf = (word: string): string => (word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`)
