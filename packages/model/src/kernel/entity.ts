import type { Entity, Fields } from './types.js'

type Optional = 'called' | 'plural' | 'ids' | 'followed'
type Declared<F extends Fields> = Omit<Entity<F>, Optional> & Partial<Pick<Entity, Optional>>

/** Fills in what most kinds share, and checks, once, at import, what the type system cannot. */
export function defineEntity<const F extends Fields>(declared: Declared<F>): Entity<F> {
  const { kind, singular, fields, links } = declared
  for (const { by } of Object.values(links)) {
    if (by !== undefined && !(by in fields)) throw new Error(`${kind}: no field '${by}'`)
  }
  const plural = singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`
  return { called: singular, plural, ids: 'base62', followed: false, ...declared }
}
