import { FilterError, limitText, type Query } from '@overlay/model'
import {
  type Caller,
  type EntityServiceService,
  Fault,
  ListQuery,
  type ListResponse,
  type Methods,
  notFound,
  Selection,
} from '@overlay/rpc'
import sql, { join } from 'sql-template-tag'
import { namesIn, required, type Store } from './kind.js'
import { listRows, type Page, queryOf, rowsOf } from './list-rows.js'
import { fittingRows } from './page-size.js'
import { allOf, columnsOf, membersIn, numberOf, rowOf, tableOf, wholeOf } from './row.js'
import type { ViewRequest } from './seams.js'
import { roleFilterOf, selectionOf } from './select.js'
import { shownOf, showRows } from './show-rows.js'
import { singleRows } from './single-rows.js'
import { encodeViews } from './views.js'

type Reads = Pick<
  Methods<EntityServiceService>,
  'list' | 'get' | 'count' | 'select' | 'view' | 'listAttributes'
>

/** The uniform operations that read rows. */
export function reads({ changeLog: { db }, kinds, kindOf, names }: Store): Reads {
  const find = singleRows(db)

  return {
    async list({ kind, query, within, perspective }, context) {
      const found = kindOf(kind)
      const { entity, seams } = found
      const asked = parsedQuery(query, context.caller)
      const parsed = seams.filter ? { ...asked, where: await seams.filter(asked.where, context) } : asked
      const roles = query?.roleFilter ?? []
      const scope = allOf([
        seams.scope?.(context.caller, perspective),
        within && selectionOf(within, entity),
        roles.length > 0 ? roleFilterOf(roles, query?.roleSemantic ?? '', entity) : undefined,
      ])
      const { caller } = context
      const rows = rowsOf(found, shownOf(found, perspective))
      const page = await listRows(db, rows, parsed, scope, query?.after ?? nothingRead, caller)
      const shape = within || roles.length > 0 ? 'linked' : 'list'
      const shown = await showRows(db, names, found, page.rows, { context, caller, perspective, shape })
      return pageOf(parsed, page, shown)
    },

    async get({ ref, perspective }, context) {
      const { kind, id } = required(ref)
      const found = kindOf(kind)
      const reading: ViewRequest = { context, caller: context.caller, perspective, shape: 'detail' }
      const row = await find(found, shownOf(found, perspective), id, context)
      if (!row) throw notFound(found.entity.called, id)
      const [json = nothingRead] = await showRows(db, names, found, [row], reading)
      return { json }
    },

    async count(_, { caller }) {
      const counts = kinds.map(({ entity, seams }) => {
        const number = numberOf(tableOf(entity), seams.scope?.(caller) ?? sql`true`, wholeOf(entity))
        return sql`select ${entity.kind}::text as kind, ${number} as rows`
      })
      const { rows } = await db.query<{ kind: string; rows: number }>(join(counts, ' union all '))
      return { rows: Object.fromEntries(rows.map(({ kind, rows }) => [kind, rows])) }
    },

    async select({ from, link, perspective }, context) {
      const { kind, id } = required(from)
      const { entity, selects } = kindOf(kind)
      const select = selects?.[link]
      if (select) return select(id, perspective, context)
      const by = entity.links[link]?.by
      if (by === undefined) throw new Error(`link ${link} of ${kind} has no rows here`)
      const { rows } = await db.query(
        sql`select ${columnsOf(entity)} from ${tableOf(entity)} where id = ${id}`,
      )
      if (!rows[0]) return noRows // wire: an unknown parent has an empty list
      const row = membersIn(rowOf(entity, rows[0]))
      const entries = (row[by] ?? []) as string[]
      if (!entity.fields[by]?.rolesOf) return { ...noRows, ids: entries }
      return { ...noRows, roles: [{ roles: entries, semantic: String(row.semantic) }] }
    },

    async view({ kind, ids }) {
      const found = await namesIn(db, kindOf(kind).entity, ids)
      return encodeViews(
        ids.map((id) => {
          const name = found.get(id)
          return name === undefined ? undefined : { name }
        }),
      )
    },

    async listAttributes({ kind, query }, { caller }) {
      const { entity } = kindOf(kind)
      // wire: without a limit all, and the sort parameter has no effect; differs: limit and offset have one
      const { filter, limit, offset } = query ?? noQuery
      const parsed = parsedQuery({ ...noQuery, filter, limit: limit || '-1', offset }, caller)
      const listed = sql`(select distinct unnest(role_attributes) as id from ${tableOf(entity)}) as word`
      const rows = {
        from: listed,
        ofPage: sql`(select page_id as id) as word`,
        shown: [sql`id`],
        symbols: attributeSymbols,
      }
      const page = await listRows(db, rows, parsed, sql`true`, query?.after ?? nothingRead, caller)
      const words = page.rows.map(({ id }) => Buffer.from(JSON.stringify(id)))
      return pageOf(parsed, page, words)
    },
  }
}

const nothingRead = Buffer.alloc(0)
/** All rows, from the first page on. */
export const noQuery = ListQuery.fromPartial({})
const attributeSymbols = new Map([['id', { column: 'id', type: 'string' as const }]])

/** Selects nothing: a base for other selections. */
export const noRows = Selection.fromPartial({})

function pageOf(query: Query, { total, next }: Page, shown: readonly Buffer[]): ListResponse {
  const { rows, count } = fittingRows(shown)
  return { rows, total, next: next(count), limit: limitText(query), offset: query.offset, contentKey: '' }
}

function parsedQuery(query: ListQuery | undefined, caller: Caller): Query {
  try {
    return queryOf(query, caller)
  } catch (err) {
    if (err instanceof FilterError) throw new Fault(err.code, err.message)
    throw err
  }
}
