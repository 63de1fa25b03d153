import type { Change, Position, Positions } from '@overlay/rpc'
import { addAll, type Bitset, clear, isSame, sizeOf } from '../domain/bitset.js'
import type { Effect } from '../domain/effect.js'
import type { Population } from '../domain/population.js'
import { MOST_NAMED } from '../limits.js'
import type { ServiceUpdates } from './service-updates.js'

/** The schemas that can revoke access. Without routers there is no session, so no wait is for sessions to load. */
export const accessSchemas: readonly string[] = ['policy', 'identity']

export interface ProgressListener {
  /** The identities whose lists or service-updates times may have changed. */
  changed(ids: readonly string[] | 'all'): void
  /** The identities whose lists or grants may have changed. */
  regranted(ids: readonly string[] | 'all'): void
}

/** What memory has of the change logs, and whom the changes of the current message or load concern. */
export function openProgress(
  identities: Population,
  updates: Pick<ServiceUpdates, 'start' | 'add' | 'advance' | 'forget'>,
  listener: ProgressListener,
) {
  const positions: Record<string, Position> = {}
  const isLoaded = (): boolean => accessSchemas.every((schema) => positions[schema])
  const viewed = identities.track() // identities whose lists the current messages may have changed
  const granted = identities.track() // the same, or whose grants
  const deletedIds = new Set<string>()
  const loading = new Set<string>()
  /** The identities whose times the loads of a schema have moved since the last one that ended. */
  const moved = new Map<string, Bitset>()
  const movedBy = (schema: string): Bitset => {
    const set = moved.get(schema) ?? identities.track()
    moved.set(schema, set)
    return set
  }

  const addUpdate = (schema: string, position: Position, atMs: number, updated: Bitset): void => {
    const ids = identities.idsOf(updated)
    if (ids.length === 0) return
    const isEverybody = ids.length > MOST_NAMED && isSame(updated, identities.present)
    updates.add({ schema, position, atMs, ids: isEverybody ? 'all' : ids })
  }

  return {
    positions: positions as Positions,
    /** Schemas whose rows are loaded now: memory mixes old rows and new ones. */
    loading: loading as Pick<ReadonlySet<string>, 'has'>,
    isLoaded,
    /** A load begins. It may follow one that was abandoned, which has changed rows, too. */
    beginLoad: (schema: string): void => void loading.add(schema),

    note(schema: string, effect: Effect, change: Change, upto: Position): void {
      const { kind, id, json, atMs, number } = change
      const position = { timeline: upto.timeline, number: number || upto.number } // rows of a load have no number
      const isDeleted = kind === 'identities' && json.length === 0
      if (isDeleted) updates.forget(id, position)
      if (!isLoaded()) return
      if (isDeleted) deletedIds.add(id)
      addAll(viewed, effect.viewed)
      addAll(granted, effect.granted)
      // one update for all rows of a load: each service may concern everybody
      if (loading.has(schema)) addAll(movedBy(schema), effect.updated)
      else addUpdate(schema, position, atMs || Date.now(), effect.updated)
    },

    /** A message is in memory, or a whole load. */
    advance(schema: string, { timeline, number }: Position): void {
      const wasLoaded = isLoaded()
      positions[schema] = { timeline, number }
      if (loading.delete(schema)) {
        addUpdate(schema, { timeline, number }, Date.now(), movedBy(schema))
        clear(movedBy(schema))
      }
      const { policy, identity } = positions
      if (policy && identity) {
        if (wasLoaded) updates.advance({ policy, identity })
        else updates.start({ policy, identity })
      }
      const named = (numbers: Bitset): readonly string[] | 'all' =>
        !wasLoaded || sizeOf(numbers) + deletedIds.size > MOST_NAMED
          ? 'all'
          : [...identities.idsOf(numbers), ...deletedIds]
      listener.changed(named(viewed))
      listener.regranted(named(granted))
      clear(viewed)
      clear(granted)
      deletedIds.clear()
    },
  }
}
