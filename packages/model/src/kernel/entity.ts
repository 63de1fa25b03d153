import type { Entity, Fields } from './types.js'

type Declared<F extends Fields> = Omit<Entity<F>, 'plural' | 'ids' | 'followed'> &
  Partial<Pick<Entity, 'plural' | 'ids' | 'followed'>>

/** Fills in what most kinds share, and checks, once, at import, what the type system cannot. */
export function defineEntity<const F extends Fields>(declared: Declared<F>): Entity<F> {
  const { kind, singular, fields, links } = declared
  for (const { by } of Object.values(links)) {
    if (by !== undefined && !(by in fields)) throw new Error(`${kind}: no field '${by}'`)
  }
  const plural = singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`
  return { plural, ids: 'base62', followed: false, ...declared }
}
