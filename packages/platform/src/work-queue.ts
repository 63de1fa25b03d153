import { Fault } from '@overlay/rpc'
import { metrics } from './metrics.js'

export interface QueueLimits {
  readonly name?: string // in metrics
  readonly running: number
  readonly waiting: number
}

/** Runs `task` when its turn comes; not at all when the caller has gone by then. */
export type Queue = <T>(task: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/** Runs so many tasks at once and lets so many wait; the others are refused before they cost anything. */
export function boundedQueue({ name = 'work', ...limits }: QueueLimits): Queue {
  const waiting = new Set<() => void>()
  let running = 0
  const count = (): void => {
    metrics.queueTasks.set({ queue: name, state: 'running' }, running)
    metrics.queueTasks.set({ queue: name, state: 'waiting' }, waiting.size)
  }

  /** Resolves when it is our turn; the place is ours then. */
  function turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        waiting.delete(start)
        signal?.removeEventListener('abort', leave)
        running++
        resolve()
      }
      const leave = (): void => {
        waiting.delete(start)
        count()
        reject(signal?.reason)
      }
      if (running < limits.running) return start()
      waiting.add(start)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }

  return async (task, signal) => {
    signal?.throwIfAborted()
    if (running >= limits.running && waiting.size >= limits.waiting) {
      metrics.queueRefused.inc({ queue: name })
      throw new Fault('SERVER_TOO_MANY_REQUESTS')
    }
    const started = turn(signal)
    count()
    await started
    try {
      return await task()
    } finally {
      running--
      const [next] = waiting
      next?.()
      count()
    }
  }
}
