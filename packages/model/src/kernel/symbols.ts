import { memoized } from './memoized.js'
import type { Entity, SymbolType } from './types.js'

export interface FilterSymbol {
  readonly column: string
  readonly type: SymbolType
  /** Absent where a null is possible: an order over the column must say where nulls go. */
  readonly notNull?: true
}

/** A member's name as its column: 'primary.updb.maxAttempts' is primary_updb_max_attempts. */
export const snake = (name: string): string =>
  name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`).replaceAll('.', '_')

/** The names that filters and sorts of this kind may use, with their columns. Nothing else reaches SQL. */
export const symbolsOf = memoized((entity: Entity): ReadonlyMap<string, FilterSymbol> => {
  const ofFields = Object.entries(entity.fields).flatMap(
    ([name, { symbol, symbolName, column, fallback }]) => {
      if (symbol === null) return []
      const notNull = column === null && fallback !== null
      const own = { column: column ?? snake(name), type: symbol, ...(notNull && { notNull }) }
      return [[symbolName ?? name, own] as const]
    },
  )
  return new Map<string, FilterSymbol>([
    ['id', { column: 'id', type: 'string', notNull: true }],
    ['createdAt', { column: 'created_at', type: 'datetime', notNull: true }],
    ['updatedAt', { column: 'updated_at', type: 'datetime', notNull: true }],
    ['tags', { column: 'tags', type: 'tags' }],
    ['isSystem', { column: 'is_system', type: 'bool', notNull: true }],
    ...ofFields,
    ...Object.entries(entity.computed ?? {}),
  ])
})
