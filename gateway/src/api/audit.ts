import {
  anyObject,
  integer,
  listOf,
  named,
  object,
  oneOf,
  orNull,
  text,
  texts,
  time,
} from '@overlay/model/schema'
import { Fault, invalid } from '@overlay/rpc'
import {
  auditFilter,
  type Cursor,
  changeNamed,
  compareCursors,
  formatCursor,
  type Page,
  parseCursor,
  unknownChange,
} from '@overlay/store/audit'
import { type AuditQuery, isSchema, readAudit, readAuditedChange } from '../clients/read-audit.js'
import type { Services } from '../clients/services.js'
import { callContext, freshCallContext } from '../http/calls.js'
import { sendData } from '../http/envelope.js'
import type { Parameter, RequestContext } from '../http/exchange.js'
import { queryOf } from '../http/query.js'
import { forbidStoring, sendParts } from '../http/send.js'
import { DEFAULT_AUDIT_PAGE, MAX_AUDIT_PAGE, MAX_EXPORTS } from '../limits.js'
import type { Handlers } from './operations.js'

export interface AuditLog {
  info(facts: object, message: string): void
}

const LINES = 'application/x-ndjson'

const filter: Parameter = {
  name: 'filter',
  type: 'string',
  description:
    'Which changes, in the filter language: timestamp, eventType, kind, entityId, entityName, previousName, authorId, authorName, requestId, sourceAddress.',
}
const after: Parameter = {
  name: 'after',
  type: 'string',
  description: 'A cursor: only later changes, oldest first.',
}
const listParameters: readonly Parameter[] = [
  filter,
  after,
  { name: 'before', type: 'string', description: 'A cursor: only earlier changes, newest first.' },
  {
    name: 'limit',
    type: 'integer',
    description: `Changes at most, 1 to ${MAX_AUDIT_PAGE}. Without it ${DEFAULT_AUDIT_PAGE}.`,
  },
]

const change = named(
  'entityChange',
  object(
    {
      ...texts('namespace', 'eventId', 'entityType', 'kind', 'entityId', 'cursor'),
      eventType: oneOf('created', 'updated', 'deleted'),
      timestamp: time,
      metadata: object(
        {
          author: object(
            { type: oneOf('identity', 'router', 'controller', 'unattributed', 'operator') },
            texts('id', 'name'),
          ),
        },
        { source: object({ type: oneOf('rest', 'ctrl.channel') }, { remoteAddr: text }), requestId: text },
      ),
    },
    { entityName: text, initialState: anyObject, finalState: anyObject },
  ),
)
const list = named(
  'listChangesEnvelope',
  object({
    data: listOf(change),
    meta: object({ limit: integer, next: orNull(text) }),
  }),
)

/** Who changed what: the audit of all services as one list. */
export function changes(services: Pick<Services, 'auditOf'>, log: AuditLog): Handlers {
  let exports = 0

  function refuseMore(): void {
    if (exports >= MAX_EXPORTS)
      throw new Fault('SERVER_TOO_MANY_REQUESTS', `${MAX_EXPORTS} exports are under way`)
  }

  async function* lines(c: RequestContext, query: AuditQuery, first: Page): AsyncGenerator<Buffer> {
    exports++
    let count = 0
    let isComplete = false
    try {
      let [page, behind] = [first, query.behind]
      const end = await settledNow(c)
      for (;;) {
        if (page.changes.length > 0) yield Buffer.from(`${page.changes.map(({ json }) => json).join('\n')}\n`)
        count += page.changes.length
        const { next } = page
        // a cursor that does not move: nothing later is settled yet
        if (!next || compareCursors(next, end) >= 0 || (behind && compareCursors(next, behind) <= 0)) {
          isComplete = true
          return
        }
        behind = next
        page = await readAudit(services, { ...query, behind }, await freshCallContext(c))
      }
    } finally {
      exports--
      const { requestId, session } = c.env
      log.info(
        { requestId, identityId: session?.identityId, changes: count, isComplete },
        'audit export ended',
      )
    }
  }

  /** Changes of later times are left to the next export: else one could go on forever. */
  async function settledNow(c: RequestContext): Promise<Cursor> {
    const { next } = await readAudit(
      services,
      { filter: '', oldestFirst: true, limit: 0 },
      await freshCallContext(c),
    )
    if (!next) throw new Error('a page of the oldest changes names its end')
    return next
  }

  return {
    'GET /changes': {
      query: listParameters,
      response: { data: list, bare: true },
      handle: async (c) => {
        const query = queryIn(c)
        const { changes, next } = await readAudit(services, query, callContext(c))
        forbidStoring(c)
        const meta = { limit: query.limit, next: next ? formatCursor(next) : null }
        const data = Buffer.from(`[${changes.map(({ json }) => json).join()}]`)
        return sendData(c, data, 200, JSON.stringify(meta))
      },
    },

    'GET /changes/{id}': {
      response: { data: change },
      handle: async (c, { id }) => {
        const { schema, id: number } = changeNamed(id)
        if (!isSchema(schema)) throw unknownChange(id)
        const json = await readAuditedChange(services, { schema, id: number }, callContext(c))
        forbidStoring(c)
        return sendData(c, json)
      },
    },

    'GET /export': {
      query: [filter, after],
      produces: [LINES],
      handle: async (c) => {
        const { filter, behind } = queryIn(c)
        refuseMore()
        const query = { filter, behind, oldestFirst: true, limit: MAX_AUDIT_PAGE }
        const first = await readAudit(services, query, callContext(c))
        refuseMore() // others may have begun meanwhile
        const { requestId, session } = c.env
        const { identityId, caller } = session ?? {}
        log.info(
          {
            requestId,
            identityId,
            identityName: caller?.identityName,
            filter,
            after: behind && formatCursor(behind),
          },
          'audit exported',
        )
        forbidStoring(c)
        return sendParts(c, LINES, () => lines(c, query, first))
      },
    },
  }
}

function queryIn(c: RequestContext): AuditQuery {
  const query = queryOf(c)
  const text = (name: string): string => query.get(name) ?? ''
  const [after, before] = [text('after'), text('before')]
  if (after !== '' && before !== '') throw invalid('before', 'before and after exclude each other', before)
  const limit = text('limit') === '' ? DEFAULT_AUDIT_PAGE : Number(text('limit'))
  if (limit < 1 || limit > MAX_AUDIT_PAGE)
    throw invalid('limit', `limit must be from 1 to ${MAX_AUDIT_PAGE}`, limit)
  auditFilter(text('filter')) // each owner parses it again
  const name = after === '' ? 'before' : 'after'
  const cursor = after || before
  return {
    filter: text('filter'),
    behind: cursor === '' ? undefined : parseCursor(name, cursor),
    oldestFirst: after !== '',
    limit,
  }
}
