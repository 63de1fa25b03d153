import { session } from '@overlay/model'
import type { Position } from '@overlay/rpc'
import {
  type ChangeLog,
  deletedIds,
  isAtLeast,
  localSource,
  type Memory,
  openProjection,
} from '@overlay/store/change-log'
import type { Logger } from 'pino'
import { MOST_ENDED, SESSION_ROW_BYTES } from '../domain/limits.js'
import type { SessionRow } from '../store/insert-session.js'
import type { SessionKey } from '../store/session.js'
import type { Entries, Entry } from './grant-cache.js'

/** Sessions that exist, in the entries of their identities, so that a second create need not look them up. */
export interface HeldSessions extends AsyncDisposable {
  /** Undefined: not in memory, or not certain at this position of our change log. */
  find(identityId: string, key: SessionKey, written: Position | undefined): SessionRow | undefined
  /** Looks up or inserts a session, and keeps it unless it ends meanwhile. */
  keep(find: () => Promise<SessionRow | undefined>): Promise<SessionRow | undefined>
  /** This replica has ended these sessions. */
  ended(ids: readonly string[]): void
  /** The entry has left memory. */
  forget(entry: Entry): void
}

interface Place {
  readonly entry: Entry
  readonly key: string
  readonly bytes: number
}

const keyOf = ({ apiSessionId, type, serviceId }: SessionKey): string =>
  `${apiSessionId} ${type} ${serviceId}`

/** Follows the ends of sessions in our change log: any replica may end them. */
export async function openHeldSessions(
  changeLog: ChangeLog,
  entries: Pick<Entries, 'get' | 'grow'>,
  log: Logger,
): Promise<HeldSessions> {
  const places = new Map<string, Place>() // by id
  let lookups = 0
  const endedMeanwhile = new Set<string>() // while there are lookups
  let restarts = 0 // results of lookups under way are not kept

  function remove(id: string): void {
    const place = places.get(id)
    if (!place) return
    const { entry, key, bytes } = place
    places.delete(id)
    entry.sessions.delete(key)
    entries.grow(entry, -bytes)
  }
  function ended(ids: readonly string[]): void {
    for (const id of ids) {
      remove(id)
      if (lookups > 0) endedMeanwhile.add(id)
    }
    if (endedMeanwhile.size <= MOST_ENDED) return
    endedMeanwhile.clear()
    restarts++
  }
  function dropAll(): void {
    for (const id of [...places.keys()]) remove(id)
    restarts++
  }
  function put(row: SessionRow): void {
    const entry = entries.get(row.identityId)
    const key = keyOf(row)
    const before = entry?.sessions.get(key)
    if (!entry || before?.id === row.id) return
    if (before) remove(before.id)
    const bytes = SESSION_ROW_BYTES + JSON.stringify(row.tags).length
    entry.sessions.set(key, row)
    places.set(row.id, { entry, key, bytes })
    entries.grow(entry, bytes)
  }

  const memory: Memory = {
    name: 'held sessions',
    kinds: [session.kind],
    loadedKinds: [],
    apply: (changes) => ended(deletedIds(changes, session.kind)),
    load() {
      dropAll() // ends were missed
      return { add: () => undefined, end: dropAll }
    },
  }
  const projection = await openProjection(localSource(changeLog, {}), memory, { log })
  return {
    find(identityId, key, written) {
      if (!projection.isFresh() || !isAtLeast(projection.position(), written)) return undefined
      return entries.get(identityId)?.sessions.get(keyOf(key))
    },
    async keep(find) {
      const before = restarts
      lookups++
      try {
        const row = await find()
        if (row && restarts === before && !endedMeanwhile.has(row.id)) put(row)
        return row
      } finally {
        lookups--
        if (lookups === 0) endedMeanwhile.clear()
      }
    },
    ended,
    forget(entry) {
      for (const { id } of entry.sessions.values()) places.delete(id)
    },
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}
