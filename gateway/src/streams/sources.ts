import { setTimeout as delay } from 'node:timers/promises'
import { openLimit, reconnect, withWatchdog } from '@overlay/process/async'
import { type Context, type Methods, ownContext, type SessionsServiceService } from '@overlay/rpc'
import { type ChangeWithCursor, type Cursor, changeIdOf, type Page } from '@overlay/store/audit'
import type { FollowLog } from '@overlay/store/change-log'
import type { AuditQuery } from '../clients/read-audit.js'
import {
  AUDIT_BACKOFF_MS,
  AUDIT_POLL_MS,
  AUDIT_POLL_PAGE,
  AUDIT_READ_MS,
  EVENT_BACKOFF_MS,
  EVENT_SILENCE_MS,
} from '../limits.js'
import { type EventSource, openSharedSource } from './shared-source.js'

const NAMESPACE = 'entityChange'

/**
 * The changes of all services, read from the audit: after their commit, in the order of their time. None is left out
 * when a service or its database does not answer for a while.
 */
export const openChangeSource = (
  read: (query: AuditQuery, context: Context) => Promise<Page>,
  log: FollowLog,
): EventSource =>
  openSharedSource(async ({ emit, opened }, signal) => {
    let behind: Cursor | undefined
    /** The first page has no changes: it only says where the stream begins. */
    const nextPage = async (): Promise<Page> => {
      using limit = openLimit(AUDIT_READ_MS, signal)
      const query = { filter: '', behind, oldestFirst: true, limit: behind ? AUDIT_POLL_PAGE : 0 }
      return await read(query, ownContext(limit.signal))
    }
    await reconnect({
      signal,
      ...AUDIT_BACKOFF_MS,
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
          if (changes.length < AUDIT_POLL_PAGE) await delay(AUDIT_POLL_MS, undefined, { signal })
        }
      },
      onOutage: (err) => log.warn({ err }, 'audit not read for streams, trying again'),
    })
  })

/** wire: each change is followed by an event of type committed, with the same id. */
function committed({ schema, id, atMs }: ChangeWithCursor): Buffer {
  const timestamp = new Date(atMs).toISOString()
  const event = { namespace: NAMESPACE, eventId: changeIdOf(schema, id), eventType: 'committed', timestamp }
  return Buffer.from(JSON.stringify(event))
}

/** The events of the network. */
export const openEventSource = (
  sessions: Pick<Methods<typeof SessionsServiceService>, 'watchEvents'>,
  log: FollowLog,
): EventSource =>
  openSharedSource(async ({ emit, opened, closed }, signal) => {
    const open = (own: AbortSignal) => sessions.watchEvents({}, ownContext(own))
    await reconnect({
      signal,
      ...EVENT_BACKOFF_MS,
      async connect({ works }) {
        try {
          for await (const { events } of withWatchdog(EVENT_SILENCE_MS, open, signal)) {
            works()
            opened()
            for (const event of events) emit(event)
          }
          throw new Error('the owner ended the stream')
        } finally {
          closed()
        }
      },
      onOutage: (err) => log.warn({ err }, 'stream of events lost, trying again'),
    })
  })
