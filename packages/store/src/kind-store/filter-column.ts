import type { FilterSymbol } from '@overlay/model'
import { Fault, type FaultCode } from '@overlay/rpc'
import sql, { raw, type Sql } from 'sql-template-tag'

export type Symbols = ReadonlyMap<string, FilterSymbol>

/** The column of a name in a filter. There is no other way from one to the other. */
export interface FilterColumn {
  readonly at: Sql
  readonly symbol: FilterSymbol
  /** The name of the tag. */
  readonly tag?: string
}

export function filterColumnOf(
  name: string,
  symbols: Symbols,
  code: FaultCode = 'INVALID_FILTER',
): FilterColumn {
  const own = symbols.get(name)
  if (own) return { at: columnSql(own), symbol: own }
  const dot = name.indexOf('.')
  const map = dot > 0 ? symbols.get(name.slice(0, dot)) : undefined
  if (map?.type !== 'tags') throw new Fault(code, `unknown symbol '${name}'`)
  return { at: columnSql(map), symbol: map, tag: name.slice(dot + 1) }
}

const columnSql = ({ column }: FilterSymbol): Sql =>
  /^\w+$/.test(column) ? raw(column) : sql`(${raw(column)})`
