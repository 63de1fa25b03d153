import type { Position, Positions } from '@overlay/rpc'
import {
  type Bus,
  type ChangeLog,
  headsReader,
  type Loaders,
  localSource,
  openProjection,
  type Source,
} from '@overlay/store/change-log'
import type { Logger } from 'pino'
import { engineKinds } from '../domain/mutators.js'
import type { EngineKind } from '../domain/rows.js'
import { emptyState, type State } from '../domain/state.js'
import type { Touched } from '../domain/touched.js'
import { WAIT_MS } from '../limits.js'
import { isEngineKind } from './decode-row.js'
import { type EngineMemory, openEngineMemory } from './engine-memory.js'
import { missedUpdates } from './missed-updates.js'
import { openProgress } from './progress.js'
import { openServiceUpdates } from './service-updates.js'
import { type Waits, waitsOn } from './waits.js'

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
  /** The ends of all change logs, from one statement: of two reads, one contains the other. */
  readHeads(): Promise<Positions>
  /** False while a schema loads: memory mixes old rows and new ones. */
  isSettled(): boolean
  /** Called after each message that touched what routers know, and after each load. */
  onTouched(listener: (message: TouchingMessage) => void): Disposable
  /** Called after each message, with the identities whose lists or service-updates times may have changed. */
  onChange(listener: (ids: readonly string[] | 'all') => void): Disposable
  /** The same, with the identities whose lists or grants may have changed. */
  onGrantChange(listener: (ids: readonly string[] | 'all') => void): Disposable
}

/** A message of a schema, or a load. */
export interface TouchingMessage {
  readonly schema: string
  readonly upto: Position
  /** Null: a load may have touched anything. */
  readonly touched: Touched | null
}

const foreignKinds: readonly string[] = ['identities', 'edge-routers']
const ownKinds = engineKinds.filter((kind) => !foreignKinds.includes(kind))

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
  await using opening = new AsyncDisposableStack()
  const state = emptyState()
  const listeners = new Set<(ids: readonly string[] | 'all') => void>()
  const grantListeners = new Set<(ids: readonly string[] | 'all') => void>()
  const rowListeners = new Set<(kind: EngineKind, id: string) => void>()
  const touchListeners = new Set<(message: TouchingMessage) => void>()
  const notify = (ids: readonly string[] | 'all'): void => {
    for (const listener of listeners) listener(ids)
  }
  const openingUpdates = openServiceUpdates(changeLog.db, databaseUrl, bus, log, {
    missed: (from, upto) => missedUpdates(sources.identity, from, upto),
    differ: notify,
  })
  const updates = opening.use(await openingUpdates)

  const progress = openProgress(state.identities, updates, {
    changed: notify,
    regranted(ids) {
      for (const listener of grantListeners) listener(ids)
    },
  })
  const names = new Map<string, ReadonlyMap<string, string>>()
  const follow = (source: Source, kinds: readonly EngineKind[]) => {
    const { schema } = source
    const memory: EngineMemory = openEngineMemory(state, kinds, {
      changed(effect, change, upto) {
        progress.note(schema, effect, change, upto)
        if (progress.loading.has(schema)) state.touches.drop()
        if (isEngineKind(change.kind)) for (const listener of rowListeners) listener(change.kind, change.id)
      },
      applied(upto) {
        const isLoad = progress.loading.has(schema)
        progress.advance(schema, upto)
        const touched = state.touches.take() ?? null
        if (!touched && !isLoad) return
        for (const listener of touchListeners) listener({ schema, upto, touched: isLoad ? null : touched })
      },
      loading: () => progress.beginLoad(schema),
    })
    for (const [kind, ofKind] of memory.names) names.set(kind, ofKind)
    return openProjection(source, memory, { log, loaded: 'background' })
  }
  const projections = [
    opening.use(await follow(localSource(changeLog, loaders), ownKinds)),
    opening.use(await follow(sources.identity, ['identities'])),
    opening.use(await follow(sources.sessions, ['edge-routers'])),
  ]
  const readHeads = headsReader(
    changeLog.db,
    projections.map(({ schema }) => schema),
    waitMs,
  )
  const opened = opening.move()
  return {
    ...waitsOn(projections, progress, readHeads, waitMs),
    state,
    positions: () => ({ ...progress.positions }),
    readHeads,
    isSettled: () =>
      projections.every(({ schema }) => progress.positions[schema] && !progress.loading.has(schema)),
    onTouched: (listener) => listening(touchListeners, listener),
    lastChangeAtMs: updates.of,
    namesOf: (kind) => names.get(kind) ?? new Map(),
    onRow: (listener) => listening(rowListeners, listener),
    onChange: (listener) => listening(listeners, listener),
    onGrantChange: (listener) => listening(grantListeners, listener),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function listening<T>(listeners: Set<T>, listener: T): Disposable {
  listeners.add(listener)
  return { [Symbol.dispose]: () => void listeners.delete(listener) }
}
