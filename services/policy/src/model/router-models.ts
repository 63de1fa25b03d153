import { setTimeout as delay } from 'node:timers/promises'
import { metrics } from '@overlay/process'
import { type Alarm, boundedQueue, coalesced, openAlarm, openSerial, yielder } from '@overlay/process/async'
import { Fault } from '@overlay/rpc'
import type { Logger } from 'pino'
import { routerScope } from '../domain/router-scope.js'
import type { Touched } from '../domain/touched.js'
import type { Engine } from '../engine/engine.js'
import {
  FULL_STATES,
  MODEL_GATHER_MS,
  MODEL_TICK_MS,
  MOST_CHANGE_BYTES,
  MOST_SHARED_SETS,
  WAITING_STATES,
} from '../limits.js'
import { type Broadcast, openBroadcast } from './broadcast.js'
import { changesOf, isAmbiguous } from './changes.js'
import { fullState } from './full-state.js'
import { type Checkpoint, type Moment, openJournal } from './journal.js'
import { partsOf } from './parts.js'

/** Where a router is: it has what memory had at the moment, which contains the checkpoint. */
export interface Reached {
  readonly checkpoint: Checkpoint
  readonly moment: Moment
}

export interface FullState extends Reached {
  readonly parts: AsyncGenerator<Buffer, void>
}

export interface ChangeSet extends Reached {
  /** None: nothing has changed for the router. */
  readonly parts: readonly Buffer[]
}

/** Builds the data models of routers from memory, once for all routers that may know the same. */
export interface RouterModels extends AsyncDisposable {
  /** The newest checkpoint that memory contains. */
  current(): Checkpoint | undefined
  /** Rings when there is a newer one. */
  readonly moved: Pick<Alarm, 'sleep'>
  /** Reads the ends of the change logs after the call, and waits until memory contains them. */
  refresh(): Promise<Checkpoint>
  /** Where a router with this index is, which any replica may have given it. Undefined: it needs a full state. */
  resume(routerId: string, timeline: string, index: number): Moment | undefined
  full(routerId: string, signal: AbortSignal): Promise<FullState>
  /** What the router has to learn. Null: it needs a full state. Undefined: memory is being loaded. */
  changes(routerId: string, from: Reached): Promise<ChangeSet | null | undefined>
}

interface Shared extends Reached {
  readonly broadcast: Broadcast
}

type Deps = Pick<
  Engine,
  'state' | 'namesOf' | 'positions' | 'readHeads' | 'waitFor' | 'isSettled' | 'onTouched'
>

export function openRouterModels(engine: Deps, log: Logger): RouterModels {
  const { state } = engine
  const journal = openJournal()
  const stop = new AbortController()
  const [touched, moved] = [openAlarm(), openAlarm()]
  let current: Checkpoint | undefined
  let isDirty = false

  if (engine.isSettled())
    for (const [schema, position] of Object.entries(engine.positions())) journal.restart(schema, position)
  const listening = engine.onTouched((schema, upto, changes) => {
    if (changes) journal.add(schema, upto, changes)
    else journal.restart(schema, upto)
    isDirty = true
    touched.ring()
  })

  const refresh = coalesced(async () => {
    const heads = await engine.readHeads()
    const checkpoint = journal.note(heads)
    await engine.waitFor(heads, stop)
    if (current?.timeline !== checkpoint.timeline || checkpoint.index > current.index) {
      current = checkpoint
      moved.ring()
    }
    return current
  })

  async function follow(): Promise<void> {
    while (!stop.signal.aborted) {
      if (!isDirty) await touched.sleep(stop.signal, MODEL_TICK_MS)
      await delay(MODEL_GATHER_MS, undefined, stop).catch(() => undefined)
      if (stop.signal.aborted) return
      isDirty = false
      await refresh().catch((err: unknown) => {
        log.debug({ err }, 'router data models are behind')
        return delay(MODEL_TICK_MS / 10, undefined, stop).catch(() => undefined)
      })
    }
  }
  const following = follow()

  /** Whether these changes concern the router otherwise than others that policies grant the same now. */
  const isOwn = (routerId: string, { rows, scopes, serviceRouters }: Touched): boolean =>
    rows['edge-routers'].has(routerId) ||
    [...serviceRouters.values()].some((routers) => routers.has(routerId)) ||
    [...scopes.values()].some(({ routers }) => routers.has(routerId))

  const states = boundedQueue({ name: 'router models', running: FULL_STATES, waiting: WAITING_STATES })
  const running = new Map<string, Shared>()

  function join(routerId: string, signal: AbortSignal): FullState | undefined {
    const shared = running.get(routerScope(state, routerId).key)
    const since = shared && journal.since(shared.moment)
    if (!shared || !since || isOwn(routerId, since)) return undefined
    const parts = shared.broadcast.join(signal)
    if (parts) metrics.routerModelBuilds.inc({ kind: 'full', origin: 'shared' })
    return parts && { ...shared, parts }
  }

  function start(routerId: string): Shared {
    if (!current || !engine.isSettled()) throw new Fault('UNAVAILABLE')
    metrics.routerModelBuilds.inc({ kind: 'full', origin: 'built' })
    const broadcast = openBroadcast(partsOf(fullState(engine, routerId), 'events'))
    return { broadcast, checkpoint: current, moment: journal.now() }
  }

  const serially = openSerial()
  const breathe = yielder()
  /** The last change sets, by the moment before them and the scope. */
  const sets = new Map<string, ChangeSet>()
  let setBytes = 0

  function keep(key: string, set: ChangeSet): void {
    const former = sets.get(key)
    if (former) setBytes -= bytesOf(former)
    sets.set(key, set)
    setBytes += bytesOf(set)
    for (const [oldest, one] of sets) {
      if (sets.size <= MOST_SHARED_SETS && setBytes <= MOST_CHANGE_BYTES) break
      sets.delete(oldest)
      setBytes -= bytesOf(one)
    }
  }

  async function changeSet(routerId: string, from: Reached): Promise<ChangeSet | null | undefined> {
    await breathe()
    if (!current || !engine.isSettled()) return undefined
    const since = journal.since(from.moment)
    if (!since) return null
    const key = isOwn(routerId, since) ? undefined : `${from.moment} ${routerScope(state, routerId).key}`
    const shared = key === undefined ? undefined : sets.get(key)
    if (shared && shared.checkpoint.index > from.checkpoint.index) {
      if (shared.parts.length > 0) metrics.routerModelBuilds.inc({ kind: 'changes', origin: 'shared' })
      return shared
    }
    const reached: Reached = { checkpoint: current, moment: journal.now() }
    const changes = changesOf(engine, routerId, since)
    if (changes === 'too much') return null
    const parts: Buffer[] = []
    let bytes = 0
    if (changes) {
      metrics.routerModelBuilds.inc({ kind: 'changes', origin: 'built' })
      for await (const part of partsOf(changes, 'changes', breathe)) {
        parts.push(part)
        bytes += part.length
        if (bytes > MOST_CHANGE_BYTES) return null
      }
    }
    const set = { ...reached, parts }
    if (key !== undefined) keep(key, set)
    return set
  }

  return {
    current: () => current,
    moved,
    refresh,
    resume(routerId, timeline, index) {
      if (!current || current.timeline !== timeline || index > current.index) return undefined
      const moment = journal.momentOf(timeline, index)
      const since = moment === undefined ? undefined : journal.since(moment)
      return since && !isOwn(routerId, since) && !isAmbiguous(state, routerId, since) ? moment : undefined
    },
    full: async (routerId, signal) =>
      join(routerId, signal) ??
      new Promise((resolve, reject) => {
        const build = async (): Promise<void> => {
          const joined = join(routerId, signal)
          if (joined) return resolve(joined)
          const shared = start(routerId)
          const { key } = routerScope(state, routerId)
          running.set(key, shared)
          const parts = shared.broadcast.join(signal)
          if (parts) resolve({ ...shared, parts })
          await shared.broadcast.made
          if (running.get(key) === shared) running.delete(key)
        }
        states(build, signal).catch(reject)
      }),
    changes: (routerId, from) => serially(() => changeSet(routerId, from)),
    async [Symbol.asyncDispose]() {
      listening[Symbol.dispose]()
      stop.abort()
      await following
    },
  }
}

const bytesOf = ({ parts }: ChangeSet): number => parts.reduce((sum, { length }) => sum + length, 0)
