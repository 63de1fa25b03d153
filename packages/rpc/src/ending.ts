import type { Context } from './context.js'
import { Fault } from './fault.js'
import { expireAfter, onAbort } from './limits.js'

/** The end of a call that its caller no longer waits for. */
export interface Ending {
  hasEnded(): boolean
  /** Of a call that has ended. */
  reason(): unknown
  /** Calls `listener` once when the call ends, or now if it has. Returns a function that removes the listener. */
  listen(listener: () => void): () => void
}

/** The end of a call that this process answers. */
export interface OwnEnding extends Ending {
  readonly signal: AbortSignal
  end(reason: Fault): void
  /** The call has been answered: its limit is no longer observed. */
  forget(): void
}

/**
 * A call ends at its limit, at the latest. Signal and limit exist only from their first use on: they cost as much as the
 * rest of a call, and most calls are answered without them.
 */
export function openEnding(limitMs: number): OwnEnding {
  const startMs = performance.now()
  let controller: AbortController | undefined
  let reason: Fault | undefined
  let listeners: Set<() => void> | undefined
  let cancelLimit: (() => void) | undefined

  function observeLimit(): void {
    if (cancelLimit || reason) return
    const restMs = limitMs - (performance.now() - startMs)
    cancelLimit = expireAfter(restMs, () => end(new Fault('TIMEOUT')))
  }
  function end(why: Fault): void {
    if (reason) return
    reason = why
    cancelLimit?.()
    controller?.abort(why)
    for (const listener of listeners ?? []) listener()
  }
  return {
    get signal() {
      if (!controller) {
        controller = new AbortController()
        if (reason) controller.abort(reason)
        else observeLimit()
      }
      return controller.signal
    },
    hasEnded: () => reason !== undefined,
    reason: () => reason,
    end,
    forget() {
      cancelLimit?.()
      listeners = undefined // of what may stay referenced for a while
    },
    listen(listener) {
      if (reason) {
        listener()
        return () => undefined
      }
      observeLimit()
      const entry = (): void => listener() // the same function may be registered twice
      listeners ??= new Set()
      listeners.add(entry)
      return () => listeners?.delete(entry)
    },
  }
}

const ENDING = Symbol('ending')

interface Noted extends Context {
  readonly [ENDING]?: Ending
}

/**
 * The end of `context` is known without reading its signal. Copies of the context do not have it. Not in a WeakMap: what
 * its values reach outlives all collections of the young generation, and the end of a request reaches the request.
 */
export function noteEnding(context: Context, ending: Ending): void {
  Object.defineProperty(context, ENDING, { value: ending })
}

export const endingOf = (context: Context): Ending => (context as Noted)[ENDING] ?? ofSignal(context.signal)

const ofSignal = (signal: AbortSignal): Ending => ({
  hasEnded: () => signal.aborted,
  reason: () => signal.reason,
  listen: (listener) => onAbort(signal, listener),
})
