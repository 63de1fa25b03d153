import { type Filter, FilterError, type FilterSymbol, parseFilter } from '@overlay/model'
import { Fault } from '@overlay/rpc'

/** SQL: the name that the entity has after the change, or had before its deletion. */
export const entityName = `coalesce(after ->> 'name', before ->> 'name', after ->> 'username', before ->> 'username')`

/** The names that filters of the audit may use. Nothing else reaches SQL. */
export const auditSymbols: ReadonlyMap<string, FilterSymbol> = new Map([
  ['timestamp', { column: 'at', type: 'datetime' }],
  [
    'eventType',
    {
      column: `case when before is null then 'created' when after is null then 'deleted' else 'updated' end`,
      type: 'string',
    },
  ],
  ['kind', { column: 'kind', type: 'string' }],
  ['entityId', { column: 'entity_id', type: 'string' }],
  ['entityName', { column: entityName, type: 'string' }],
  ['previousName', { column: `before ->> 'name'`, type: 'string' }],
  ['authorId', { column: 'identity_id', type: 'string' }],
  ['authorName', { column: `coalesce(identity_name, '')`, type: 'string' }],
  ['requestId', { column: 'request_id', type: 'string' }],
  ['sourceAddress', { column: `coalesce(source_address, '')`, type: 'string' }],
])

/** The condition of a filter, which has no other clauses here: the audit has one order and its own pages. */
export function auditFilter(text: string): Filter {
  if (text === '') return { op: 'true' }
  try {
    const { where = { op: 'true' }, sort, skip, limit } = parseFilter(text)
    if (sort === undefined && skip === undefined && limit === undefined) return where
  } catch (err) {
    if (err instanceof FilterError) throw new Fault(err.code, err.message)
    throw err
  }
  throw new Fault('INVALID_FILTER', 'sort, skip and limit are not supported here')
}
