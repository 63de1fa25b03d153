import { Fault, onAbort } from '@overlay/rpc'
import { metrics, noteFullQueue } from '../metrics.js'

export interface QueueLimits {
  readonly name?: string // in metrics
  readonly running: number
  readonly waiting: number
}

/** Runs `task` when its turn comes, unless the signal is aborted before. */
export type Queue = <T>(task: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/** The source of a task, and a name within it. */
export interface Share {
  readonly source: string
  readonly name: string
  /** The source has proved itself with this name. Such shares take turns with all others, and own half of the places. */
  readonly isFamiliar?: boolean
}

/** As `Queue`. `hasWaited`: the task did not start at once. */
export type FairQueue = <T>(
  share: Share,
  task: (hasWaited: boolean) => Promise<T>,
  signal?: AbortSignal,
) => Promise<T>

/** Runs a number of tasks at once and lets a number wait. Refuses the others. */
export function boundedQueue(limits: QueueLimits): Queue {
  const queue = fairQueue(limits)
  const share = { source: '', name: '' }
  return (task, signal) => queue(share, task, signal)
}

/**
 * A bounded queue in which sources take turns, and within a source its names. A full queue makes room for the source
 * with fewer tasks by refusing the newest task of the source with most: no source can use up the places of others. Nor
 * can any number of sources use up those of familiar shares, or the other way round.
 */
export function fairQueue({ name: queue = 'work', ...limits }: QueueLimits): FairQueue {
  const groups = { familiar: openTurns(), other: openTurns() }
  const groupOf = ({ isFamiliar = false }: Share) => (isFamiliar ? groups.familiar : groups.other)
  const waitingCount = (): number => groups.familiar.size() + groups.other.size()
  let running = 0
  let lastServed = groups.other
  const counted = { running: 0, waiting: 0 } // another part of the process may have a queue of this name
  const count = (): void => {
    const now = { running, waiting: waitingCount() }
    for (const state of ['running', 'waiting'] as const) {
      metrics.queueTasks.inc({ queue, state }, now[state] - counted[state])
      counted[state] = now[state]
    }
  }
  const refusal = (): Fault => {
    noteFullQueue(queue)
    return new Fault('SERVER_TOO_MANY_REQUESTS')
  }

  /** The groups take turns. */
  function next(): Waiter | undefined {
    const first = lastServed === groups.other ? groups.familiar : groups.other
    const group = first.size() > 0 ? first : lastServed
    lastServed = group
    return group.next()
  }

  /** Makes room for one more task of this share, if it is entitled to it. */
  function makeRoom(share: Share): boolean {
    const own = groupOf(share)
    const other = own === groups.other ? groups.familiar : groups.other
    const group = own.size() < limits.waiting / 2 && other.size() > limits.waiting / 2 ? other : own
    const displaced = group === own ? own.displacedBy(share) : other.newestOfLargest()
    if (!displaced) return false
    group.remove(displaced)
    displaced.refuse()
    return true
  }

  /** Resolves when the task may start. */
  function turn(share: Share, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        ...share,
        start() {
          finish()
          running++
          resolve()
        },
        refuse() {
          finish()
          reject(refusal())
        },
      }
      const leave = (): void => {
        groupOf(share).remove(waiter)
        count()
        reject(signal?.reason)
      }
      groupOf(share).add(waiter)
      const finish = signal ? onAbort(signal, leave) : () => undefined
    })
  }

  return async (share, task, signal) => {
    signal?.throwIfAborted()
    const hasWaited = running >= limits.running
    if (hasWaited) {
      if (waitingCount() >= limits.waiting && !makeRoom(share)) throw refusal()
      const started = turn(share, signal)
      count()
      await started
    } else {
      running++
      count()
    }
    try {
      return await task(hasWaited)
    } finally {
      running--
      next()?.start()
      count()
    }
  }
}

interface Waiter extends Share {
  start(): void
  refuse(): void
}

/** Waiters of a source, by name. Maps are in the order of turns. */
interface Line {
  readonly names: Map<string, Waiter[]>
  size: number
}

function openTurns() {
  const lines = new Map<string, Line>()
  let size = 0

  function remove(waiter: Waiter): void {
    const { source, name } = waiter
    const line = lines.get(source)
    const waiters = line?.names.get(name)
    const place = waiters?.indexOf(waiter) ?? -1
    if (!line || !waiters || place < 0) return
    waiters.splice(place, 1)
    if (waiters.length === 0) line.names.delete(name)
    line.size--
    if (line.size === 0) lines.delete(source)
    size--
  }

  return {
    size: () => size,
    remove,

    add(waiter: Waiter): void {
      const line = lines.get(waiter.source) ?? { names: new Map<string, Waiter[]>(), size: 0 }
      lines.set(waiter.source, line)
      const waiters = line.names.get(waiter.name)
      if (waiters) waiters.push(waiter)
      else line.names.set(waiter.name, [waiter])
      line.size++
      size++
    },

    /** Takes the waiter whose turn it is; its source, and its name within it, go to the end. */
    next(): Waiter | undefined {
      const [[source, line] = []] = lines
      const [[name, waiters = []] = []] = line?.names ?? []
      const [waiter] = waiters
      if (!line || source === undefined || name === undefined || !waiter) return undefined
      lines.delete(source)
      lines.set(source, line)
      line.names.delete(name)
      line.names.set(name, waiters)
      remove(waiter)
      return waiter
    },

    /** The newest task of the source with most, and within it of the name with most. */
    newestOfLargest(): Waiter | undefined {
      const largest = largestOf(lines, ({ size }) => size)
      return largest && largestOf(largest.value.names, ({ length }) => length)?.value.at(-1)
    },

    /** The task to displace for one more of this share. Undefined: no share has more than this one would. */
    displacedBy({ source, name }: Share): Waiter | undefined {
      const largest = largestOf(lines, ({ size }) => size)
      if (!largest) return undefined
      const isOwn = largest.key === source
      if (!isOwn && largest.size <= (lines.get(source)?.size ?? 0) + 1) return undefined
      const { names } = largest.value
      const most = largestOf(names, ({ length }) => length)
      if (!most || (isOwn && most.size <= (names.get(name)?.length ?? 0) + 1)) return undefined
      return most.value.at(-1)
    },
  }
}

function largestOf<V>(all: ReadonlyMap<string, V>, sizeOf: (value: V) => number) {
  let largest: { readonly key: string; readonly value: V; readonly size: number } | undefined
  for (const [key, value] of all) {
    const size = sizeOf(value)
    if (!largest || size > largest.size) largest = { key, value, size }
  }
  return largest
}
