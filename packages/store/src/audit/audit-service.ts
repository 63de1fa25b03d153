import { boundedQueue } from '@overlay/process/async'
import type { AuditedChange, AuditServiceService, Context, Methods } from '@overlay/rpc'
import type { Database } from '../postgres/database.js'
import { auditFilter } from './filter.js'
import { changeIdOf, unknownChange } from './place.js'
import { readChange, readChanges, type SchemaChange, settledMs } from './read.js'

/** A filter that no index serves reads the whole table. */
const READ_MS = 5000
/** Reads of the audit must leave connections to the requests of clients. */
const LIMITS = { name: 'audit', running: 2, waiting: 20 }
const MOST_CHANGES = 500

/** Answers for the audit of the own schema. */
export function auditService(db: Database): Methods<AuditServiceService> {
  const turn = boundedQueue(LIMITS)
  const { schema } = db
  return {
    list({ filter, behind, oldestFirst, limit }, context) {
      const where = auditFilter(filter)
      return turn(
        () =>
          db.transaction(deadlineOf(context), async (tx) => {
            const settled = oldestFirst ? await settledMs(tx) : 0
            const query = {
              where,
              behind,
              beforeMs: oldestFirst ? settled : undefined,
              oldestFirst,
              limit: Math.min(limit, MOST_CHANGES),
            }
            const { changes, isComplete } = limit > 0 ? await readChanges(tx, schema, query) : nothing
            return { changes: changes.map(messageOf), isComplete, settledMs: settled }
          }),
        context.signal,
      )
    },

    async get({ id }, context) {
      const found = await turn(() => readChange(db, schema, id), context.signal)
      if (!found) throw unknownChange(changeIdOf(schema, id))
      return messageOf(found)
    },
  }
}

const nothing = { changes: [], isComplete: true }

function deadlineOf({ deadline }: Context): Date {
  const own = Date.now() + READ_MS
  return new Date(Math.min(own, deadline?.getTime() ?? own))
}

const messageOf = ({ json, ...change }: SchemaChange): AuditedChange => ({
  ...change,
  json: Buffer.from(json),
})
