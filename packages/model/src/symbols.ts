import type { Entity, SymbolType } from './kernel/types.js'

export interface FilterSymbol {
  readonly column: string
  readonly type: SymbolType
}

/** A member's name as its column: 'primary.updb.maxAttempts' is primary_updb_max_attempts. */
export const snake = (name: string): string =>
  name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`).replaceAll('.', '_')

const cache = new WeakMap<Entity, ReadonlyMap<string, FilterSymbol>>()

/** The names that a filter or sort may use for this kind, and their columns. Nothing else reaches SQL. */
export function symbolsOf(entity: Entity): ReadonlyMap<string, FilterSymbol> {
  const known = cache.get(entity)
  if (known) return known
  const own = Object.entries(entity.fields).flatMap(([name, { symbol, symbolName, column }]) =>
    symbol === null ? [] : [[symbolName ?? name, { column: column ?? snake(name), type: symbol }] as const],
  )
  const symbols = new Map<string, FilterSymbol>([
    ['id', { column: 'id', type: 'string' }],
    ['createdAt', { column: 'created_at', type: 'datetime' }],
    ['updatedAt', { column: 'updated_at', type: 'datetime' }],
    ['tags', { column: 'tags', type: 'tags' }],
    ['isSystem', { column: 'is_system', type: 'bool' }],
    ...own,
    ...Object.entries(entity.computed ?? {}),
  ])
  cache.set(entity, symbols)
  return symbols
}
