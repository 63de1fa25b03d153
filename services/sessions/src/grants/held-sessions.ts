import { session } from '@overlay/model'
import type { Position } from '@overlay/rpc'
import { type ChangeLog, deletedIds, isAtLeast, localSource, openProjection } from '@overlay/store/change-log'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { HELD_SESSIONS_BYTES, MOST_ENDED, SESSION_ROW_BYTES } from '../limits.js'
import type { SessionRow } from '../store/insert-session.js'
import type { SessionKey } from '../store/session.js'

/** Sessions that exist, in memory, so that a second create need not look them up. */
export interface HeldSessions extends AsyncDisposable {
  /** Undefined: not in memory, or not certain at this position of our change log. */
  find(key: SessionKey, written: Position | undefined): SessionRow | undefined
  /** Looks up or inserts a session, and keeps it unless it ends meanwhile. */
  keep(find: () => Promise<SessionRow | undefined>): Promise<SessionRow | undefined>
  /** This replica has ended these sessions. */
  ended(ids: readonly string[]): void
  readonly bytes: number
}

const keyOf = ({ apiSessionId, type, serviceId }: SessionKey): string =>
  `${apiSessionId} ${type} ${serviceId}`

/** Follows the ends of sessions in our change log: any replica may end them. */
export async function openHeldSessions(changeLog: ChangeLog, log: Logger): Promise<HeldSessions> {
  const keys = new Map<string, string>() // by id
  const rows = new LRUCache<string, SessionRow>({
    maxSize: HELD_SESSIONS_BYTES,
    sizeCalculation: ({ tags }) => SESSION_ROW_BYTES + JSON.stringify(tags).length,
    dispose: ({ id }) => keys.delete(id),
  })
  let lookups = 0
  const endedMeanwhile = new Set<string>() // while there are lookups
  let restarts = 0 // results of lookups under way are not kept

  function ended(ids: readonly string[]): void {
    for (const id of ids) {
      const key = keys.get(id)
      if (key !== undefined) rows.delete(key)
      if (lookups > 0) endedMeanwhile.add(id)
    }
    if (endedMeanwhile.size <= MOST_ENDED) return
    endedMeanwhile.clear()
    restarts++
  }
  function dropAll(): void {
    rows.clear()
    restarts++
  }

  const memory = {
    name: 'held sessions',
    kinds: [session.kind],
    loadedKinds: [],
    apply: (changes: Parameters<typeof deletedIds>[0]) => ended(deletedIds(changes, session.kind)),
    load() {
      dropAll() // ends were missed
      return { add: () => undefined, end: dropAll }
    },
  }
  const projection = await openProjection(localSource(changeLog, {}), memory, { log })
  return {
    get bytes() {
      return rows.calculatedSize
    },
    find(key, written) {
      if (!projection.isFresh() || !isAtLeast(projection.position(), written)) return undefined
      return rows.get(keyOf(key))
    },
    async keep(find) {
      const before = restarts
      lookups++
      try {
        const row = await find()
        if (row && restarts === before && !endedMeanwhile.has(row.id)) {
          rows.set(keyOf(row), row)
          keys.set(row.id, keyOf(row))
        }
        return row
      } finally {
        lookups--
        if (lookups === 0) endedMeanwhile.clear()
      }
    },
    ended,
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}
