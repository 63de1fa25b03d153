import { boundedQueue } from '@overlay/process/async'
import type { AuditedChange, AuditServiceService, Context, Methods } from '@overlay/rpc'
import { AUDIT_PAGE_ROWS, AUDIT_READ_MS, AUDIT_READS, AUDIT_READS_WAITING } from '../limits.js'
import type { Database } from '../postgres/database.js'
import { changeIdOf, unknownChange } from './cursor.js'
import { auditFilter } from './filter.js'
import { readChange, readChanges, type SchemaChange, settledMs } from './read.js'

/** Answers for the audit of the own schema. */
export function auditService(db: Database): Methods<AuditServiceService> {
  const turn = boundedQueue({ name: 'audit', running: AUDIT_READS, waiting: AUDIT_READS_WAITING })
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
              limit: Math.min(limit, AUDIT_PAGE_ROWS),
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
  const own = Date.now() + AUDIT_READ_MS
  return new Date(Math.min(own, deadline?.getTime() ?? own))
}

const messageOf = ({ json, ...change }: SchemaChange): AuditedChange => ({
  ...change,
  json: Buffer.from(json),
})
