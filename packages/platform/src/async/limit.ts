import { Fault } from '@overlay/rpc'

/** A signal for one piece of work. */
export interface Limit extends Disposable {
  readonly signal: AbortSignal
  /** Lets the time begin anew. */
  refresh(): void
  /** The time was over first. */
  readonly isOver: boolean
}

/** Fails when the signal is aborted: for a race with work that may go on after it. */
export const untilAborted = (signal: AbortSignal, detail?: string): Promise<never> =>
  new Promise((_, reject) => {
    const tell = (): void => reject(new Fault('TIMEOUT', detail))
    if (signal.aborted) tell()
    else signal.addEventListener('abort', tell, { once: true })
  })

/** Aborts with any of the parents or after the time. Not AbortSignal.any: parents that live long would keep it for ever. */
export function openLimit(ms: number, ...parents: readonly AbortSignal[]): Limit {
  const own = new AbortController()
  let isOver = false
  const timer = setTimeout(() => {
    isOver = true
    own.abort()
  }, ms)
  const stop = (): void => own.abort()
  for (const parent of parents) {
    if (parent.aborted) stop()
    parent.addEventListener('abort', stop)
  }
  return {
    signal: own.signal,
    refresh: () => timer.refresh(),
    get isOver() {
      return isOver
    },
    [Symbol.dispose]() {
      clearTimeout(timer)
      for (const parent of parents) parent.removeEventListener('abort', stop)
    },
  }
}
