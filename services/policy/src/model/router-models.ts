import { setTimeout as delay } from 'node:timers/promises'
import { metrics } from '@overlay/process'
import { type Alarm, boundedQueue, coalesced, openAlarm, openSerial, yielder } from '@overlay/process/async'
import { Fault, type Positions } from '@overlay/rpc'
import type { Logger } from 'pino'
import { scopeKey } from '../domain/router-scope.js'
import { type Touched, uniteTouched } from '../domain/touched.js'
import type { Engine } from '../engine/engine.js'
import {
  EXACT_READS,
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
import { type Checkpoint, type Moment, openJournal, type Reached } from './journal.js'
import { partsOf } from './parts.js'

/** Where a router is: it has what memory had then. */
export interface RouterReached extends Reached {
  /** Except this: it has come with an index of any replica. */
  readonly lacks?: Touched
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
  /** The newest checkpoint that memory contained. */
  current(): Checkpoint | undefined
  /** Rings when there is a newer one. */
  readonly moved: Pick<Alarm, 'sleep'>
  /** Reads the ends of the change logs after the call, and waits until memory contains them. */
  refresh(): Promise<Checkpoint>
  /** Where a router with this index is, which any replica may have given it. Undefined: it needs a full state. */
  resume(routerId: string, timeline: string, index: number): Promise<RouterReached | undefined>
  full(routerId: string, signal: AbortSignal): Promise<FullState>
  /** What the router has to learn. Null: it needs a full state. Undefined: memory is being loaded. */
  changes(routerId: string, from: RouterReached): Promise<ChangeSet | null | undefined>
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
  let isDirty = false

  if (engine.isSettled())
    for (const [schema, position] of Object.entries(engine.positions())) journal.restart(schema, position)
  const listening = engine.onTouched(({ touched: changes, ...message }) => {
    if (changes) journal.add({ ...message, touched: changes })
    else journal.restart(message.schema, message.upto)
    isDirty = true
    touched.ring()
  })

  const reach = (heads: Positions, readAfter: Moment): Reached => {
    const before = journal.current()?.checkpoint
    const reached = journal.reach(heads, readAfter)
    if (reached.checkpoint.index !== before?.index || reached.checkpoint.timeline !== before.timeline)
      moved.ring()
    return reached
  }
  /** Tries to meet a moment at which memory has the heads and nothing beyond. */
  const refresh = coalesced(async (): Promise<Checkpoint> => {
    for (let reads = 1; ; reads++) {
      const readAfter = journal.now()
      const heads = await engine.readHeads()
      await engine.waitFor(heads, stop)
      if (journal.isAt(heads, readAfter) || reads === EXACT_READS) return reach(heads, readAfter).checkpoint
    }
  })
  /** The checkpoint of this moment: what is built before anything is awaited is from it. */
  async function here(): Promise<Reached | undefined> {
    if (journal.current()?.moment !== journal.now()) await refresh()
    const current = journal.current()
    if (!current || !engine.isSettled()) return undefined
    return current.moment === journal.now() ? current : reach(current.checkpoint.heads, current.moment)
  }

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

  /** Whether these changes concern this router in another way than routers to which policies grant the same now. */
  const isOwn = (routerId: string, { rows, scopes, serviceRouters }: Touched): boolean =>
    rows['edge-routers'].has(routerId) ||
    [...serviceRouters.values()].some((routers) => routers.has(routerId)) ||
    [...scopes.values()].some(({ routers }) => routers.has(routerId))

  const states = boundedQueue({ name: 'router models', running: FULL_STATES, waiting: WAITING_STATES })
  const running = new Map<string, Shared>()

  function join(routerId: string, signal: AbortSignal): FullState | undefined {
    const shared = running.get(scopeKey(state, routerId))
    const since = shared && journal.since(shared.moment)
    if (!shared || !since || isOwn(routerId, since)) return undefined
    const parts = shared.broadcast.join(signal)
    if (parts) metrics.routerModelBuilds.inc({ kind: 'full', origin: 'shared' })
    return parts && { ...shared, parts }
  }

  function start(routerId: string, reached: Reached): Shared {
    metrics.routerModelBuilds.inc({ kind: 'full', origin: 'built' })
    return { ...reached, broadcast: openBroadcast(partsOf(fullState(engine, routerId), 'events')) }
  }

  const serially = openSerial()
  const yieldNow = yielder()
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

  async function changeSet(routerId: string, from: RouterReached): Promise<ChangeSet | null | undefined> {
    await yieldNow()
    const reached = await here().catch(() => undefined) // without the database, there are no changes
    if (!reached || reached.checkpoint.index <= from.checkpoint.index) return undefined
    const later = journal.since(from.moment)
    if (!later) return null
    const since = from.lacks ? uniteTouched([from.lacks, later]) : later
    const start = from.lacks ? `${from.checkpoint.index} ${from.moment}` : from.moment
    const key = isOwn(routerId, since) ? undefined : `${start} ${scopeKey(state, routerId)}`
    const shared = key === undefined ? undefined : sets.get(key)
    if (shared && shared.checkpoint.index > from.checkpoint.index) {
      if (shared.parts.length > 0) metrics.routerModelBuilds.inc({ kind: 'changes', origin: 'shared' })
      return shared
    }
    const changes = changesOf(engine, routerId, since)
    if (changes === 'too much') return null
    const parts: Buffer[] = []
    let bytes = 0
    if (changes) {
      metrics.routerModelBuilds.inc({ kind: 'changes', origin: 'built' })
      for await (const part of partsOf(changes, 'changes', yieldNow)) {
        parts.push(part)
        bytes += part.length
        if (bytes > MOST_CHANGE_BYTES) return null
      }
    }
    const set = { ...reached, parts }
    if (key !== undefined) keep(key, set)
    return set
  }

  async function resume(
    routerId: string,
    timeline: string,
    index: number,
  ): Promise<RouterReached | undefined> {
    const current = journal.current()?.checkpoint
    if (current?.timeline !== timeline || index > current.index) return undefined
    const missed = await journal.missedBy(timeline, index, yieldNow)
    const later = missed && journal.since(missed.moment)
    if (!later) return undefined
    const touched = uniteTouched([missed.touched, later])
    if (isOwn(routerId, touched) || isAmbiguous(state, routerId, touched, missed.unsure)) return undefined
    return { checkpoint: { ...current, index }, moment: missed.moment, lacks: missed.touched }
  }

  return {
    current: () => journal.current()?.checkpoint,
    moved,
    refresh,
    resume: (routerId, timeline, index) => serially(() => resume(routerId, timeline, index)),
    full: async (routerId, signal) =>
      join(routerId, signal) ??
      new Promise((resolve, reject) => {
        const build = async (): Promise<void> => {
          const reached = await here()
          const joined = join(routerId, signal)
          if (joined) return resolve(joined)
          if (!reached) throw new Fault('UNAVAILABLE')
          const shared = start(routerId, reached)
          const key = scopeKey(state, routerId)
          running.set(key, shared)
          const parts = shared.broadcast.join(signal)
          if (parts) resolve({ ...shared, parts })
          await shared.broadcast.done
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
