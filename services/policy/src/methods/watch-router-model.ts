import type { Methods, PolicyServiceService, RouterModelPart } from '@overlay/rpc'
import { MODEL_HEARTBEAT_MS, QUIET_MS } from '../limits.js'
import type { Reached } from '../model/journal.js'
import type { FullState, RouterModels, RouterReached } from '../model/router-models.js'

type Part = RouterModelPart
/** Parts, and a value at their end. */
type Sending<T> = AsyncGenerator<Part, T>

/**
 * Streams what a router may know: a full state, or what has changed since its index; then changes. An empty set moves the
 * index of a router without changes, so that other replicas can bring it up to date.
 */
export const watchRouterModel = (models: RouterModels): Methods<PolicyServiceService>['watchRouterModel'] =>
  async function* ({ routerId, timeline, index, once }, { signal }) {
    let sentIndex = index
    let sentAt = performance.now()

    async function* send(reached: Reached, isFull: boolean, parts: AsyncIterable<Buffer>): Sending<void> {
      const { checkpoint } = reached
      const previousIndex = sentIndex
      const part = (events: Buffer, isLast: boolean): Part => ({
        isFull,
        events,
        isLast,
        timeline: checkpoint.timeline,
        index: checkpoint.index,
        previousIndex,
      })
      const iterator = parts[Symbol.asyncIterator]()
      try {
        for (;;) {
          const { value, done } = yield* withHeartbeats(iterator.next())
          if (done) break
          yield part(value, false)
        }
      } finally {
        await iterator.return?.()
      }
      signal.throwIfAborted() // the parts may have ended early
      yield part(nothing, true)
      sentIndex = checkpoint.index
      sentAt = performance.now()
    }
    async function* sendFull(): Sending<Reached> {
      yield* withHeartbeats(models.refresh())
      const state: FullState = yield* withHeartbeats(models.full(routerId, signal))
      yield* send(state, true, state.parts)
      return state
    }

    yield* withHeartbeats(models.refresh())
    const isFresh = once || index === 0
    const resumed = isFresh ? undefined : yield* withHeartbeats(models.resume(routerId, timeline, index))
    let reached: RouterReached = resumed ?? (yield* sendFull())
    let heartbeatAt = performance.now()
    while (!once && !signal.aborted) {
      const woken = models.moved.sleep(signal, MODEL_HEARTBEAT_MS)
      const { index, timeline } = models.current() ?? reached.checkpoint
      const isReplaced = timeline !== reached.checkpoint.timeline
      const isBehind = !isReplaced && index > reached.checkpoint.index
      const changes = isBehind ? yield* withHeartbeats(models.changes(routerId, reached)) : undefined
      const set = isReplaced ? null : changes
      if (set === null) reached = yield* sendFull()
      if (set) reached = set
      const parts = set?.parts ?? []
      const isDue = reached.checkpoint.index > sentIndex && performance.now() - sentAt >= QUIET_MS
      if (parts.length > 0 || isDue) yield* send(reached, false, iterate(parts))
      else if (performance.now() - heartbeatAt >= MODEL_HEARTBEAT_MS) {
        heartbeatAt = performance.now()
        yield unchanged
      }
      if (!set) await woken
    }
  }

const nothing = Buffer.alloc(0)
/** While a state or a set is being made. */
const heartbeat: Part = {
  isFull: false,
  events: nothing,
  isLast: false,
  timeline: '',
  index: 0,
  previousIndex: 0,
}
const unchanged: Part = { ...heartbeat, isLast: true }

async function* iterate(parts: readonly Buffer[]): AsyncGenerator<Buffer, void> {
  yield* parts
}

/** Empty parts until the work is done. */
async function* withHeartbeats<T>(work: Promise<T>): Sending<T> {
  const done = work.then((value) => ({ value }))
  for (;;) {
    let timer: NodeJS.Timeout | undefined
    const tick = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), MODEL_HEARTBEAT_MS)
    })
    const ended = await Promise.race([done, tick]).finally(() => clearTimeout(timer))
    if (ended) return ended.value
    yield heartbeat
  }
}
