import type { Context } from './context.js'
import { expireAfter } from './deadlines.js'
import { Fault } from './fault.js'
import { onAbort } from './on-abort.js'

/** The end of a call that its caller no longer waits for. */
export interface Cancellation {
  isCancelled(): boolean
  /** Of a call that has ended. */
  reason(): unknown
  /** Calls `listener` once when the call ends, or now if it has. Returns a function that removes the listener. */
  listen(listener: () => void): () => void
  /** Aborted at the end. Created at the first use. */
  signal(): AbortSignal
}

/** The end of a call that this process answers. */
export interface OwnCancellation extends Cancellation {
  cancel(reason: Fault): void
  /** The call has been answered: its limit is no longer observed. */
  forget(): void
}

/**
 * A call ends at its limit, at the latest. Signal and limit exist only from their first use on: they cost as much as the
 * rest of a call, and most calls are answered without them.
 */
export function openCancellation(limitMs: number): OwnCancellation {
  const startMs = performance.now()
  let controller: AbortController | undefined
  let reason: Fault | undefined
  let listeners: Set<() => void> | undefined
  let cancelLimit: (() => void) | undefined

  function observeLimit(): void {
    if (cancelLimit || reason) return
    const restMs = limitMs - (performance.now() - startMs)
    cancelLimit = expireAfter(restMs, () => cancel(new Fault('TIMEOUT')))
  }
  function cancel(why: Fault): void {
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
    isCancelled: () => reason !== undefined,
    reason: () => reason,
    cancel,
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

const CANCELLATION = Symbol('cancellation')

interface Cancellable extends Context {
  readonly [CANCELLATION]?: Cancellation
}

/** One function for all contexts: with an accessor in a literal, V8 gives each object a shape of its own. */
const signalMember: PropertyDescriptor = {
  enumerable: true,
  get(this: Cancellable) {
    return cancellationOf(this).signal()
  },
}

/**
 * The context of a call whose signal is created at its first use. Copies of the context have the signal only. The
 * cancellation is a member, not in a WeakMap, whose values outlive all collections of the young generation.
 */
export function withCancellation(members: Omit<Context, 'signal'>, cancellation: Cancellation): Context {
  const context = Object.defineProperty(members, 'signal', signalMember) as Context
  setCancellation(context, cancellation)
  return context
}

/** The cancellation of `context` is known without reading its signal. */
export function setCancellation(context: Context, cancellation: Cancellation): void {
  Object.defineProperty(context, CANCELLATION, { value: cancellation })
}

export const cancellationOf = (context: Context): Cancellation =>
  (context as Cancellable)[CANCELLATION] ?? ofSignal(context.signal)

const ofSignal = (signal: AbortSignal): Cancellation => ({
  isCancelled: () => signal.aborted,
  reason: () => signal.reason,
  listen: (listener) => onAbort(signal, listener),
  signal: () => signal,
})
