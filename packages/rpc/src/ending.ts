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
  /** Aborted at the end. Created at the first use. */
  signal(): AbortSignal
}

/** The end of a call that this process answers. */
export interface OwnEnding extends Ending {
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
    signal() {
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

/** One function for all contexts: of an accessor in a literal, each object would have a shape of its own in V8. */
const signalMember: PropertyDescriptor = {
  enumerable: true,
  get(this: Noted) {
    return endingOf(this).signal()
  },
}

/**
 * The context of a call whose end is known without its signal, which is created at its first use. Copies of the context
 * have the signal only. No WeakMap has the end: what its values reach, here the whole request, outlives all collections
 * of the young generation.
 */
export function contextEnding(members: Omit<Context, 'signal'>, ending: Ending): Context {
  const context = Object.defineProperty(members, 'signal', signalMember) as Context
  noteEnding(context, ending)
  return context
}

/** The end of `context` is known without reading its signal. */
export function noteEnding(context: Context, ending: Ending): void {
  Object.defineProperty(context, ENDING, { value: ending })
}

export const endingOf = (context: Context): Ending => (context as Noted)[ENDING] ?? ofSignal(context.signal)

const ofSignal = (signal: AbortSignal): Ending => ({
  hasEnded: () => signal.aborted,
  reason: () => signal.reason,
  listen: (listener) => onAbort(signal, listener),
  signal: () => signal,
})
