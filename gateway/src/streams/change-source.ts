import { setTimeout as delay } from 'node:timers/promises'
import { openLimit, reconnect } from '@overlay/process/async'
import { type Context, ownContext } from '@overlay/rpc'
import { changeIdOf, type Page, type Place, type PlacedChange } from '@overlay/store/audit'
import type { FollowLog } from '@overlay/store/change-log'
import type { AuditQuery } from '../clients/read-audit.js'
import { type EventSource, openSharedSource } from './shared-source.js'

const NAMESPACE = 'entityChange'
const EVERY_MS = 500
const READ_MS = 8000
const LIMIT = 200
const PAUSES = { firstMs: 500, longestMs: 5000 }

/**
 * The changes of all services, read from the audit: after their commit, in the order of their time. None is left out
 * when a service or its database does not answer for a while.
 */
export const openChangeSource = (
  read: (query: AuditQuery, context: Context) => Promise<Page>,
  log: FollowLog,
): EventSource =>
  openSharedSource(async ({ emit, opened }, signal) => {
    let behind: Place | undefined
    /** The first page has no changes: it only says where the stream begins. */
    const nextPage = async (): Promise<Page> => {
      using limit = openLimit(READ_MS, signal)
      const query = { filter: '', behind, oldestFirst: true, limit: behind ? LIMIT : 0 }
      return await read(query, ownContext(limit.signal))
    }
    await reconnect({
      signal,
      ...PAUSES,
      async connect({ works }) {
        for (;;) {
          const { changes, next } = await nextPage()
          works()
          behind = next
          opened()
          for (const change of changes) {
            const { entityType: type, json } = change
            emit({ namespace: NAMESPACE, type, json: Buffer.from(json) })
            emit({ namespace: NAMESPACE, type, json: committed(change) })
          }
          if (changes.length < LIMIT) await delay(EVERY_MS, undefined, { signal })
        }
      },
      onOutage: (err) => log.warn({ err }, 'audit not read for streams, trying again'),
    })
  })

/** wire: the second event of each change. */
function committed({ schema, id, atMs }: PlacedChange): Buffer {
  const timestamp = new Date(atMs).toISOString()
  const event = { namespace: NAMESPACE, eventId: changeIdOf(schema, id), eventType: 'committed', timestamp }
  return Buffer.from(JSON.stringify(event))
}
