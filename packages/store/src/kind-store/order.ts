import type { Query, SortKey } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import type { QueryResultRow } from 'pg'
import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import { SORT_KEYS } from '../limits.js'
import { filterColumnOf, type Symbols } from './filter-column.js'

type Sort = Query['sort']

/** wire: nulls are less than everything, strings go by bytes, and id breaks ties. */
export const orderOf = (sort: Sort, symbols: Symbols): Sql =>
  join(
    keysOf(sort, symbols).map(({ at, descending, nullable }) => {
      const nulls = descending ? 'last' : 'first'
      return sql`${at}${raw(`${descending ? ' desc' : ''}${nullable ? ` nulls ${nulls}` : ''}`)}`
    }),
  )

/**
 * The limit stands in the text: the plan of a prepared statement depends on it. The offset is hidden from the planner.
 * Otherwise, if the first offsets on a connection are large, Postgres plans the statement again for every execution.
 */
export const pageOf = ({ offset, limit }: { readonly offset: number; readonly limit: number }): Sql =>
  sql`limit ${raw(String(limit))}${offset > 0 ? sql` offset (select ${offset}::bigint)` : empty}`

/** The column `cursor`: the place of a row in the order, as JSON. */
export const cursorColumnOf = (sort: Sort, symbols: Symbols): Sql =>
  sql`to_json(array[${join(keysOf(sort, symbols).map(({ at }) => sql`${at}::text`))}])::text as cursor`

/** Where a list continues, and how many rows are left of it; null: all. */
export interface Cursor {
  readonly at: readonly (string | null)[]
  readonly left: number | null
}

/** Opaque to callers. The row has the cursor column. */
export const cursorOf = ({ cursor }: QueryResultRow, left: number | null): Buffer =>
  Buffer.from(`{"at":${cursor},"left":${left}}`)

/** Absent: the list begins. */
export const cursorIn = (after: Uint8Array): Cursor | undefined =>
  after.length > 0 ? (JSON.parse(Buffer.from(after).toString()) as Cursor) : undefined

/** The rows behind the one that the cursor names, in the same order. */
export function afterOf({ at: values }: Cursor, sort: Sort, symbols: Symbols): Sql {
  const keys = keysOf(sort, symbols)
  if (values.length !== keys.length) throw new Error('the cursor belongs to another order')
  return (
    keys.reduceRight<Sql | undefined>((later, key, i) => behind(key, values[i] ?? null, later), undefined) ??
    sql`true`
  )
}

/** Behind in this key, or equal in it and behind in the later ones. */
function behind({ at, descending, nullable, cast }: Key, value: string | null, later: Sql | undefined): Sql {
  const place = sql`${value}::text::${raw(cast)}`
  const equal = value === null ? sql`${at} is null` : sql`${at} = ${place}`
  const tie = later && sql`(${equal} and ${later})`
  if (value === null)
    return descending
      ? (tie ?? sql`false`)
      : tie
        ? sql`(${at} is not null or ${tie})`
        : sql`${at} is not null`
  const beyond = descending ? sql`${at} < ${place}` : sql`${at} > ${place}`
  const last = descending && nullable ? sql`(${beyond} or ${at} is null)` : beyond
  if (!tie) return last
  // the first condition says nothing new, but an index can start from it
  return descending ? sql`(${last} or ${tie})` : sql`(${at} >= ${place} and (${last} or ${tie}))`
}

interface Key {
  readonly at: Sql
  readonly descending: boolean
  readonly nullable: boolean
  readonly cast: string
}

const casts = { string: 'text', number: 'numeric', bool: 'boolean', datetime: 'timestamptz' } as const

function keysOf(sort: Sort, symbols: Symbols): Key[] {
  const keys: Key[] = []
  const named = sort.slice(0, SORT_KEYS)
  const unique = named.findIndex(({ symbol }) => symbol === 'id')
  const needed: Sort =
    unique < 0 ? [...named, { symbol: 'id', descending: false }] : named.slice(0, unique + 1)
  for (const key of needed) keys.push(keyOf(key, symbols))
  return keys
}

function keyOf({ symbol: name, descending, by }: SortKey, symbols: Symbols): Key {
  const code = by === 'parameter' ? 'INVALID_SORT_IDENTIFIER' : 'INVALID_FILTER'
  const { at, symbol } = filterColumnOf(name, symbols, code)
  const { type } = symbol
  if (type === 'tags' || type === 'strings') throw new Fault(code, `cannot sort by '${name}'`)
  return {
    at: type === 'string' ? sql`${at} collate "C"` : at,
    descending,
    nullable: symbol.notNull !== true,
    cast: casts[type],
  }
}
