import {
  type FilterSymbol,
  filterLimits,
  parseQuery,
  type Query,
  strangerLimits,
  symbolsOf,
} from '@overlay/model'
import { type Caller, isStranger, type ListQuery } from '@overlay/rpc'
import type { QueryResultRow } from 'pg'
import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import { PAGE_ROWS } from '../limits.js'
import { type Db, ofClients, ofStrangers, onlyRow } from '../postgres/database.js'
import type { Kind } from './kind.js'
import { afterOf, cursorColumnOf, cursorIn, cursorOf, orderOf, pageOf } from './order.js'
import { allOf, numberOf, tableOf, wholeOf } from './row.js'
import { whereOf } from './where.js'

export interface Page {
  readonly rows: readonly QueryResultRow[]
  readonly total: number
  /** Where the next page starts if this one ends after so many rows; empty when the query asks for no more. */
  next(count: number): Buffer
}

/** The table of a kind, or a query with the same shape. */
export interface Rows {
  readonly from: Sql
  /** The row whose id is `page_id`. */
  readonly ofPage: Sql
  /** What is selected of the rows of the page. */
  readonly shown: readonly Sql[]
  readonly symbols: ReadonlyMap<string, FilterSymbol>
  /** The number of all rows, where the schema counts them. */
  readonly whole?: Sql | undefined
}

export function rowsOf({ entity }: Kind, shown: readonly Sql[]): Rows {
  const from = tableOf(entity)
  const ofPage = sql`${from} where ${from}.id = page_id`
  return { from, ofPage, shown, symbols: symbolsOf(entity), whole: wholeOf(entity) }
}

export const queryOf = (query: ListQuery | undefined, caller: Caller): Query =>
  parseQuery(
    query?.filter ?? '',
    { sort: query?.sort ?? '', limit: query?.limit ?? '', offset: query?.offset ?? '' },
    isStranger(caller) ? strangerLimits : filterLimits,
  )

/**
 * One page, in one statement. Rows are counted only when the page does not determine their number. The rows that the
 * offset skips and those that are sorted have their id alone: an index has it, and members are computed for the page.
 * Rows of the page are found one by one: a planner with no statistics yet would join, and read and sort the whole table.
 */
export async function listRows(
  db: Db,
  { from, ofPage, shown, symbols, whole }: Rows,
  query: Query,
  scope: Sql,
  after: Uint8Array,
  caller: Caller,
): Promise<Page> {
  const cursor = cursorIn(after)
  const left = cursor ? cursor.left : query.limit
  const limit = Math.min(left ?? Number.POSITIVE_INFINITY, PAGE_ROWS)
  const condition = allOf([scope, whereOf(query.where, symbols)])
  const counted = numberOf(from, condition, whole)
  const behind = cursor ? sql`and ${afterOf(cursor, query.sort, symbols)}` : sql``
  const order = orderOf(query.sort, symbols)
  const place = cursorColumnOf(query.sort, symbols)
  const total = cursor ? empty : sql`, ${totalOf(limit, counted)}`
  const origin = isStranger(caller) ? ofStrangers : ofClients
  const { rows } = await db.query(
    sql`
      with page as (
           select id as page_id, row_number() over () as page_place
             from (select id from ${from} where ${condition} ${behind}
                    order by ${order} ${pageOf({ limit, offset: cursor ? 0 : query.offset })}) as sorted)
    select shown.* ${total}
      from page cross join lateral (select ${join([...shown, place])} from ${ofPage} limit 1) as shown
     order by page_place`,
    origin,
  )

  const next = (count: number): Buffer => {
    const last = rows[count - 1]
    const leftAfter = left === null ? null : left - count
    const isMore = count < rows.length || (rows.length === limit && leftAfter !== 0)
    return last && isMore ? cursorOf(last, leftAfter) : Buffer.alloc(0)
  }
  if (cursor) return { rows, total: 0, next }
  const isBehindTheLast = rows.length === 0 && query.offset > 0
  if (isBehindTheLast) return { rows, total: await countOf(db, counted, origin), next }
  return { rows, total: rows.at(-1)?.page_total ?? query.offset + rows.length, next }
}

/** Each row of a full page has the number of matching rows. */
const totalOf = (limit: number, counted: Sql): Sql => sql`
           case when (select count(*) from page) = ${raw(String(limit))} then ${counted} end as page_total`

async function countOf(db: Db, counted: Sql, origin: typeof ofClients | typeof ofStrangers): Promise<number> {
  const { rows } = await db.query<{ total: number }>(sql`select ${counted} as total`, origin)
  return onlyRow(rows).total
}
