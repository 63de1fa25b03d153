import {
  type Bus,
  type ChangeLog,
  type Loaders,
  localSource,
  openProjection,
  type Projection,
  type Source,
} from '@overlay/platform/change-log'
import { bestEffort } from '@overlay/platform/postgres'
import { type Context, Fault, type Positions } from '@overlay/rpc'
import type { Logger } from 'pino'
import { isSame } from '../domain/bitset.js'
import type { FedKind } from '../domain/changes.js'
import { emptyState, type State } from '../domain/state.js'
import { type FedMemory, fedMemory } from './memory.js'
import { missedUpdates } from './missed-updates.js'
import { openUpdates } from './service-updates.js'

/** Who may reach what, in memory, fed by three streams: this schema's, identity's and sessions'. */
export interface Engine extends AsyncDisposable {
  readonly state: State
  /** Applied so far, of every stream. */
  positions(): Positions
  /** Resolves when all of these are applied, of the streams that are followed. TIMEOUT when aborted. */
  reach(positions: Positions, signal: AbortSignal): Promise<void>
  /** Resolves when everything is applied that the owners had at the time of the call. TIMEOUT when aborted. */
  confirm(signal: AbortSignal): Promise<void>
  /** The same, of this schema's stream alone. */
  confirmOwn(signal: AbortSignal): Promise<void>
  /** The same, of the streams that can take access away, unless it was so a moment ago. */
  vouch(signal: AbortSignal): Promise<void>
  /** All that access depends on has been loaded once. */
  hasLoaded(): boolean
  /** Access is as its owners had it within the last two seconds. */
  trusted(): boolean
  /** In milliseconds; 0: nothing has changed. */
  lastChangeAtMs(identityId: string): number
  /** By what the rows of a kind are known, by id. */
  namesOf(kind: FedKind): ReadonlyMap<string, string>
  /** Told after each message of a stream whose lists or times may have changed. */
  onChange(listener: (ids: readonly string[] | 'all') => void): Disposable
}

const ownKinds: readonly FedKind[] = [
  'services',
  'posture-checks',
  'posture-data',
  'configs',
  'config-types',
  'service-configs',
  'service-policies',
  'edge-router-policies',
  'service-edge-router-policies',
]
const timed = ['policy', 'identity'] // what moves service-updates times
const WAIT_MS = 2000
const NAMED = 1000 // more identities than these are not named one by one

export interface Feeds {
  readonly changeLog: ChangeLog
  readonly loaders: Loaders
  readonly identity: Source
  readonly sessions: Source
  readonly databaseUrl: string
  readonly bus: Bus
  readonly log: Logger
}

/** Returns before the other services' rows are loaded, so that no start waits in a circle. */
export async function startEngine({
  changeLog,
  loaders,
  identity,
  sessions,
  databaseUrl,
  bus,
  log,
}: Feeds): Promise<Engine> {
  const state = emptyState()
  const listeners = new Set<(ids: readonly string[] | 'all') => void>()
  const tell = (ids: readonly string[] | 'all'): void => {
    for (const listener of listeners) listener(ids)
  }
  const updates = await openUpdates(changeLog.db, databaseUrl, bus, log, {
    missed: (from, upto) => missedUpdates(identity, from, upto),
    differ: tell,
  })

  const places: Record<string, { timeline: string; number: number }> = {}
  const loading = new Set<string>() // at the start nothing is loaded
  const isBegun = (): boolean => timed.every((schema) => places[schema])
  const viewed = new Set<string>()

  const memoryOf = (schema: string, kinds: readonly FedKind[]): FedMemory =>
    fedMemory(state, kinds, {
      followed(effect, { kind, id, json, atMs, number }, upto) {
        const place = { timeline: upto.timeline, number: number || upto.number } // rows of a load have no number
        const isGone = kind === 'identities' && json.length === 0
        if (isGone) updates.forget(id, place)
        if (!isBegun()) return
        if (isGone) viewed.add(id) // has no number any more by which an effect could name it
        for (const one of state.identities.idsOf(effect.viewed)) viewed.add(one)
        const ids = state.identities.idsOf(effect.updated)
        if (ids.length === 0) return
        const isEverybody = ids.length > NAMED && isSame(effect.updated, state.identities.present)
        updates.note({
          schema,
          place,
          atMs: atMs || Date.now(),
          ids: isEverybody ? 'all' : ids,
        })
      },
      applied(upto) {
        loading.delete(schema)
        const hadBegun = isBegun()
        places[schema] = { timeline: upto.timeline, number: upto.number }
        const { policy, identity: identities } = places
        if (policy && identities) {
          if (hadBegun) updates.moved({ policy, identity: identities })
          else updates.begin({ policy, identity: identities })
        }
        tell(hadBegun && viewed.size <= NAMED ? [...viewed] : 'all')
        viewed.clear()
      },
      loading: () => void loading.add(schema),
    })

  const own = memoryOf('policy', ownKinds)
  const identities = memoryOf('identity', ['identities'])
  const routers = memoryOf('sessions', ['edge-routers'])
  const names = new Map([own, identities, routers].flatMap((memory) => [...memory.names]))
  const options = { bus, log, loaded: 'background' } as const
  const projections: readonly Projection[] = [
    await openProjection(localSource(changeLog, loaders), own, options),
    await openProjection(identity, identities, options),
    await openProjection(sessions, routers, options),
  ]
  const bySchema = new Map(projections.map((projection) => [projection.schema, projection]))
  /** Who is asked about access waits for the end of a load. Without routers there is no session, so those need not. */
  const isTorn = (schema: string): boolean =>
    loading.has(schema) || (timed.includes(schema) && !places[schema])

  const confirm = async (schemas: readonly string[], signal: AbortSignal): Promise<void> => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)])
    await Promise.all(schemas.map((schema) => bySchema.get(schema)?.catchUp(limited)))
  }
  const trusted = (): boolean => timed.every((schema) => bySchema.get(schema)?.isFresh())

  return {
    state,
    positions: () => ({ ...places }),
    async reach(positions, signal) {
      const missing = projections.filter(({ schema }) => {
        const [place, wanted] = [places[schema], positions[schema]]
        if (isTorn(schema)) return wanted !== undefined || timed.includes(schema)
        return wanted && !(place?.timeline === wanted.timeline && place.number >= wanted.number)
      })
      if (missing.length === 0) return
      const limited = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)])
      const reach = (one: Projection): Promise<void> => {
        const wanted = positions[one.schema]
        return wanted ? one.waitFor(wanted, limited) : one.catchUp(limited)
      }
      await Promise.all(missing.map(reach))
    },
    confirm: (signal) => confirm([...bySchema.keys()], signal),
    confirmOwn: (signal) => confirm(['policy'], signal),
    vouch: async (signal) => (trusted() ? undefined : confirm(timed, signal)),
    hasLoaded: isBegun,
    trusted,
    lastChangeAtMs: updates.of,
    namesOf: (kind) => names.get(kind) ?? new Map(),
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    async [Symbol.asyncDispose]() {
      for (const projection of projections) await projection[Symbol.asyncDispose]()
      await updates[Symbol.asyncDispose]()
    },
  }
}

/** For lists: when the wait is over in vain they answer from what there is, but never from a part of the first load. */
export async function orWhatThereIs(engine: Pick<Engine, 'hasLoaded'>, wait: Promise<void>): Promise<void> {
  await bestEffort('policy', wait)
  if (!engine.hasLoaded()) throw new Fault('UNAVAILABLE')
}

/**
 * For lists. Clients see what went through their gateway; admins see what the owners had when they asked, and rows of
 * this schema before the others are loaded.
 */
export const current = (engine: Engine, { caller, positions, signal }: Context): Promise<void> =>
  caller.isAdmin
    ? bestEffort('policy', engine.confirm(signal))
    : orWhatThereIs(engine, engine.reach(positions, signal))
