import { DEFAULT_LIMIT, MAX_LIMIT, MAX_OFFSET } from '../limits.js'
import { FilterError, type Query, type SortKey } from './filter.js'
import { type FilterLimits, filterLimits, parse } from './parser.js'

/** The parameters besides `filter`, as they were sent; absent ones are empty. */
export interface ListParameters {
  readonly sort: string
  readonly limit: string
  readonly offset: string
}

/** Reads filter and parameters of a list. wire: `sort by`, `skip` and `limit` in the filter overrule the parameters. */
export function parseQuery(
  filter: string,
  { sort, limit, offset }: ListParameters,
  limits = filterLimits,
): Query {
  const own = filter === '' ? {} : parse(filter, limits)
  const asked = sort === '' ? [] : sortParameter(sort, limits)
  return {
    where: own.where ?? { op: 'true' },
    sort: own.sort ?? asked,
    offset: Math.min(Math.max(own.skip ?? integer('offset', offset) ?? 0, 0), MAX_OFFSET),
    limit: own.limit === null ? null : bounded(own.limit ?? integer('limit', limit) ?? DEFAULT_LIMIT),
  }
}

/** wire: the `limit` that answers show for a list of all: the largest int64, more than a JSON number can hold. */
export const limitText = ({ limit }: Query): string => (limit === null ? '9223372036854775807' : `${limit}`)

/** wire: a limit above 500 is 500, one below 1 is 10, -1 is all. */
function bounded(limit: number): number | null {
  if (limit === -1) return null
  return limit < 1 ? DEFAULT_LIMIT : Math.min(limit, MAX_LIMIT)
}

function integer(name: string, text: string): number | undefined {
  if (text === '') return undefined
  if (!/^[-+]?\d+$/.test(text)) throw new FilterError('INVALID_PAGINATION', `${name} must be a whole number`)
  return Number(text)
}

function sortParameter(text: string, limits: FilterLimits): readonly SortKey[] {
  try {
    return (parse(`sort by ${text}`, limits).sort ?? []).map((key) => ({ ...key, by: 'parameter' }))
  } catch (err) {
    if (err instanceof FilterError) throw new FilterError('INVALID_SORT_IDENTIFIER', err.message)
    throw err
  }
}
