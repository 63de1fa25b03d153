import {
  type Bus,
  type ChangeLog,
  headsReader,
  type Loaders,
  localSource,
  openProjection,
  type Source,
} from '@overlay/platform/change-log'
import type { Change, Position, Positions } from '@overlay/rpc'
import type { Logger } from 'pino'
import { addAll, type Bitset, emptySet, intersection, isSame, sizeOf } from '../domain/bitset.js'
import type { Effect } from '../domain/effect.js'
import { type EngineKind, engineKinds } from '../domain/mutators.js'
import { emptyState, type State } from '../domain/state.js'
import { isEngineKind } from './decode-row.js'
import { type EngineMemory, engineMemory } from './memory.js'
import { missedUpdates } from './missed-updates.js'
import { openServiceUpdates } from './service-updates.js'
import { accessSchemas, WAIT_MS, type Waits, waitsOn } from './waits.js'

/** Which identities may reach which services and routers, in memory, from the change logs of three schemas. */
export interface Engine extends Waits, AsyncDisposable {
  readonly state: State
  /** What memory has of each change log. */
  positions(): Positions
  /** In milliseconds; 0: nothing has changed. */
  lastChangeAtMs(identityId: string): number
  /** The names of a kind's rows, by id. */
  namesOf(kind: EngineKind): ReadonlyMap<string, string>
  /** Called after each row that is written or removed. */
  onRow(listener: (kind: EngineKind, id: string) => void): Disposable
  /** Called after each message, with the identities whose lists or service-updates times may have changed. */
  onChange(listener: (ids: readonly string[] | 'all') => void): Disposable
  /** The same, with the identities whose lists or grants may have changed. */
  onGrantChange(listener: (ids: readonly string[] | 'all') => void): Disposable
}

const foreignKinds: readonly string[] = ['identities', 'edge-routers']
const ownKinds = engineKinds.filter((kind) => !foreignKinds.includes(kind))
/** More identities than these are not named one by one. */
const MOST_NAMED = 1000

export interface EngineDeps {
  readonly changeLog: ChangeLog
  readonly loaders: Loaders
  readonly sources: { readonly identity: Source; readonly sessions: Source }
  readonly databaseUrl: string
  readonly bus: Bus
  readonly log: Logger
  /** The limit of one wait for other services. */
  readonly waitMs?: number
}

/** Returns before the rows of other services are loaded, so that services may start in any order. */
export async function startEngine({
  changeLog,
  loaders,
  sources,
  databaseUrl,
  bus,
  log,
  waitMs = WAIT_MS,
}: EngineDeps): Promise<Engine> {
  const state = emptyState()
  const listeners = new Set<(ids: readonly string[] | 'all') => void>()
  const grantListeners = new Set<(ids: readonly string[] | 'all') => void>()
  const rowListeners = new Set<(kind: EngineKind, id: string) => void>()
  const notify = (ids: readonly string[] | 'all'): void => {
    for (const listener of listeners) listener(ids)
  }
  const updates = await openServiceUpdates(changeLog.db, databaseUrl, bus, log, {
    missed: (from, upto) => missedUpdates(sources.identity, from, upto),
    differ: notify,
  })

  const positions: Record<string, Position> = {}
  /** Schemas whose rows are loaded now, and the identities whose times the load has moved. */
  const loading = new Map<string, Bitset>()
  const isLoaded = (): boolean => accessSchemas.every((schema) => positions[schema])
  let viewed = emptySet() // identities whose lists the current message may have changed
  let granted = emptySet() // the same, or whose grants
  const deleted = new Set<string>() // identities without a number

  const addUpdate = (schema: string, position: Position, atMs: number, updated: Bitset): void => {
    const ids = state.identities.idsOf(updated)
    if (ids.length === 0) return
    const isEverybody = ids.length > MOST_NAMED && isSame(updated, state.identities.present)
    updates.add({ schema, position, atMs, ids: isEverybody ? 'all' : ids })
  }

  const noteEffect = (schema: string, effect: Effect, change: Change, upto: Position): void => {
    const { kind, id, json, atMs, number } = change
    const position = { timeline: upto.timeline, number: number || upto.number } // rows of a load have no number
    const isDeleted = kind === 'identities' && json.length === 0
    if (isDeleted) updates.forget(id, position)
    if (!isLoaded()) return
    if (isDeleted) deleted.add(id)
    addAll(viewed, effect.viewed)
    addAll(granted, effect.granted)
    const inLoad = loading.get(schema)
    if (inLoad) addAll(inLoad, effect.updated)
    else addUpdate(schema, position, atMs || Date.now(), effect.updated)
  }
  const advance = (schema: string, { timeline, number }: Position): void => {
    const inLoad = loading.get(schema)
    if (inLoad) addUpdate(schema, { timeline, number }, Date.now(), inLoad)
    loading.delete(schema)
    const wasLoaded = isLoaded()
    positions[schema] = { timeline, number }
    const { policy, identity } = positions
    if (policy && identity) {
      if (wasLoaded) updates.advance({ policy, identity })
      else updates.start({ policy, identity })
    }
    const named = (numbers: Bitset): readonly string[] | 'all' => {
      const present = intersection(numbers, state.identities.present)
      if (!wasLoaded || sizeOf(present) + deleted.size > MOST_NAMED) return 'all'
      return [...state.identities.idsOf(present), ...deleted]
    }
    notify(named(viewed))
    const grants = named(granted)
    for (const listener of grantListeners) listener(grants)
    viewed = emptySet()
    granted = emptySet()
    deleted.clear()
  }
  const names = new Map<string, ReadonlyMap<string, string>>()
  const follow = (source: Source, kinds: readonly EngineKind[]) => {
    const { schema } = source
    const memory: EngineMemory = engineMemory(state, kinds, {
      changed(effect, change, upto) {
        noteEffect(schema, effect, change, upto)
        if (isEngineKind(change.kind)) for (const listener of rowListeners) listener(change.kind, change.id)
      },
      applied: (upto) => advance(schema, upto),
      loading() {
        // one update for all rows: each service may concern everybody. An abandoned load has changed rows, too
        if (!loading.has(schema)) loading.set(schema, emptySet())
      },
    })
    for (const [kind, ofKind] of memory.names) names.set(kind, ofKind)
    return openProjection(source, memory, { bus, log, loaded: 'background' })
  }
  const projections = [
    await follow(localSource(changeLog, loaders), ownKinds),
    await follow(sources.identity, ['identities']),
    await follow(sources.sessions, ['edge-routers']),
  ]
  const readHeads = headsReader(
    changeLog.db,
    projections.map(({ schema }) => schema),
    waitMs,
  )
  return {
    ...waitsOn(projections, { positions, loading, isLoaded }, readHeads, waitMs),
    state,
    positions: () => ({ ...positions }),
    lastChangeAtMs: updates.of,
    namesOf: (kind) => names.get(kind) ?? new Map(),
    onRow: (listener) => listening(rowListeners, listener),
    onChange: (listener) => listening(listeners, listener),
    onGrantChange: (listener) => listening(grantListeners, listener),
    async [Symbol.asyncDispose]() {
      for (const projection of projections) await projection[Symbol.asyncDispose]()
      await updates[Symbol.asyncDispose]()
    },
  }
}

function listening<T>(listeners: Set<T>, listener: T): Disposable {
  listeners.add(listener)
  return { [Symbol.dispose]: () => void listeners.delete(listener) }
}
