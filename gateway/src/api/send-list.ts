import { type Entity, memoized, readSchemaOf, symbolsOf } from '@overlay/model'
import type { Context, ListRequest, ListResponse, Perspective, Selection } from '@overlay/rpc'
import { callContext, freshCallContext } from '../http/calls.js'
import { wrapData } from '../http/envelope.js'
import type { Answer, Parameter, RequestContext } from '../http/exchange.js'
import { queryOf } from '../http/query.js'
import { forbidStoring, JSON_TYPE, sendBytes, sendParts } from '../http/send.js'

export const paging: readonly Parameter[] = [
  { name: 'limit', type: 'integer', description: 'Rows at most; -1 for all of them. Without it 10.' },
  { name: 'offset', type: 'integer', description: 'Rows to leave out at the beginning.' },
  {
    name: 'filter',
    type: 'string',
    description: 'Which rows, in the filter language; may end in sort, skip and limit.',
  },
  { name: 'sort', type: 'string', description: 'Up to five symbols, each with asc or desc.' },
]

/** wire: the sort parameter has no effect; the console sorts by `name`, which attributes do not have. */
export const attributePaging: readonly Parameter[] = paging
  .filter(({ name }) => name !== 'sort')
  .map((one) =>
    one.name === 'limit' ? { ...one, description: 'Attributes at most. Without it all of them.' } : one,
  )

export const byRole: readonly Parameter[] = [
  {
    name: 'roleFilter',
    type: 'strings',
    description: 'Role attributes (#word) or ids (@id) that rows must have.',
  },
  {
    name: 'roleSemantic',
    type: 'string',
    description: 'AllOf or AnyOf of the attributes. Without it AllOf.',
  },
]

/** The query of the client. The owner of the rows parses it. */
export function readListRequest(
  c: RequestContext,
  kind: string,
  within?: Selection,
  perspective?: Perspective,
): ListRequest {
  const query = queryOf(c)
  const text = (name: string): string => query.get(name) ?? ''
  return {
    kind,
    query: {
      filter: text('filter'),
      sort: text('sort'),
      limit: text('limit'),
      offset: text('offset'),
      roleFilter: query.getAll('roleFilter'),
      roleSemantic: text('roleSemantic'),
      after: Buffer.alloc(0),
    },
    within,
    perspective,
  }
}

export type List = (request: ListRequest, context: Context) => Promise<ListResponse>

/** Answers one page, or all rows page by page. Rows are passed on as text, unparsed. */
export async function sendList(
  c: RequestContext,
  entity: Entity,
  request: ListRequest,
  fetch: List,
  onPage?: (page: ListResponse, body: string | Buffer) => void,
): Promise<Response> {
  const first = await fetch(request, callContext(c))
  if (showsTokens(entity)) forbidStoring(c)
  return answerFrom(c, { type: entity.listType, fields: filterable(entity) }, first, request, fetch, onPage)
}

/** Attributes in use, as strings. */
export async function sendAttributes(
  c: RequestContext,
  request: ListRequest,
  fetch: List,
): Promise<Response> {
  const first = await fetch(request, callContext(c))
  return answerFrom(c, { type: JSON_TYPE, fields: '["id"]' }, first, request, fetch)
}

interface ListForm {
  readonly type: string
  /** JSON of the symbols that filters may name. */
  readonly fields: string
}

function answerFrom(
  c: RequestContext,
  { type, fields }: ListForm,
  first: ListResponse,
  request: ListRequest,
  fetch: List,
  onPage?: (page: ListResponse, body: string | Buffer) => void,
): Answer {
  const meta = metaOf(fields, first)
  if (first.next.length > 0) return sendAllPages(c, type, meta, first, request, fetch)
  const body = wrapData(first.rows, meta)
  onPage?.(first, body)
  return sendBytes(c, 200, body, type)
}

const filterable = memoized((entity: Entity) => JSON.stringify([...symbolsOf(entity).keys()]))

/**
 * Whether a member of the rows is a token. The rows alone do not decide, since clients compare headers.
 * wire: lists of identities, whose enrollments have tokens while they are open, have no such header.
 */
const showsTokens = memoized((entity: Entity) => {
  const { properties = {} } = readSchemaOf(entity) as { readonly properties?: object }
  return Object.keys(properties).some((name) => /(token|jwt)$/i.test(name))
})

/** The limit is text: "all" is 9223372036854775807, beyond the precision of numbers. */
const metaOf = (fields: string, { limit, offset, total }: Omit<ListResponse, 'rows'>): string =>
  `{"filterableFields":${fields},"pagination":{"limit":${limit},"offset":${offset},"totalCount":${total}}}`

function sendAllPages(
  c: RequestContext,
  type: string,
  meta: string,
  first: ListResponse,
  request: ListRequest,
  fetch: List,
): Response {
  async function* parts(): AsyncGenerator<Buffer> {
    yield Buffer.from('{"data":[')
    let page = first
    let separator = ''
    for (;;) {
      const rows = page.rows.subarray(1, -1) // without the brackets
      if (rows.length > 0) {
        yield Buffer.concat([Buffer.from(separator), rows])
        separator = ','
      }
      if (page.next.length === 0) break
      page = await fetch(
        { ...request, query: request.query && { ...request.query, after: page.next } },
        await freshCallContext(c),
      )
    }
    yield Buffer.from(`],"meta":${meta}}`)
  }
  return sendParts(c, type, parts)
}
