/** A signal for one piece of work. */
export interface Limit extends Disposable {
  readonly signal: AbortSignal
  /** Lets the time begin anew. */
  refresh(): void
  /** The time was over first. */
  readonly isOver: boolean
}

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
