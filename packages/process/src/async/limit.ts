import { Fault, onAbort } from '@overlay/rpc'

/** A signal with a time limit. */
export interface Limit extends Disposable {
  readonly signal: AbortSignal
  /** Starts the time again. */
  refresh(): void
  /** True when the time ended before a parent was aborted. */
  isOver(): boolean
}

/** Rejects when the signal is aborted. For a race with work that may continue after it. */
export const untilAborted = (signal: AbortSignal, detail?: string): Promise<never> =>
  new Promise((_, reject) => {
    const abort = (): void => reject(new Fault('TIMEOUT', detail))
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })

/**
 * Aborts with any parent or after the time. AbortSignal.any with AbortSignal.timeout costs ten times as much, and each
 * pair stays in memory until its time is over.
 */
export function openLimit(ms: number, ...parents: readonly AbortSignal[]): Limit {
  const controller = new AbortController()
  let isOver = false
  const timer = setTimeout(() => {
    isOver = true
    controller.abort()
  }, ms)
  const stop = (): void => controller.abort()
  const listeners = parents.map((parent) => onAbort(parent, stop))
  return {
    signal: controller.signal,
    refresh: () => timer.refresh(),
    isOver: () => isOver,
    [Symbol.dispose]() {
      clearTimeout(timer)
      for (const remove of listeners) remove()
    },
  }
}
