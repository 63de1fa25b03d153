import { clientAddressOf } from '@overlay/process/tls'
import {
  type Caller,
  type Context,
  type Positions,
  system,
  traceparentOf,
  withCancellation,
} from '@overlay/rpc'
import type { Exchange, RequestContext } from './exchange.js'

/** For calls to services. All calls of a request share one deadline. */
export function callContext({ env }: RequestContext): Context {
  env.context ??= newContext(env, 0)
  return env.context
}

/**
 * The same with a deadline of its own: for a page of a long answer. One outlives many sessions, so each page needs a
 * session that would be admitted now, and is for the caller as it is by then.
 */
export async function freshCallContext({ env }: RequestContext): Promise<Context> {
  await env.calls.readmit(env)
  return newContext(env, performance.now() - env.startedMs)
}

/** The same for an answer that is not older than these positions. */
export function callContextAt({ env }: RequestContext, positions: Positions): Context {
  return newContext(env, 0, { ...env.calls.positions(), ...positions })
}

/** The same for an answer that contains the writes at these positions, and at no others. */
export const callContextOf = ({ env }: RequestContext, positions: Positions): Context =>
  newContext(env, 0, positions)

/** Cancels all calls under way: the answer is no longer needed. */
export function abortCalls(exchange: Exchange, reason: unknown): void {
  if (exchange.abortReason !== undefined) return
  exchange.abortReason = reason
  exchange.abort?.abort(reason)
  for (const listener of exchange.endListeners ?? []) listener()
}

const anonymous: Caller = { ...system, isAdmin: false }

function newContext(exchange: Exchange, laterMs: number, positions = exchange.calls.positions()): Context {
  const { incoming, requestId, session, calls } = exchange
  exchange.traceparent ??= traceparentOf(firstOf(incoming.headers.traceparent))
  const leftMs = exchange.startedMs + laterMs + calls.limitMs - performance.now()
  const members = {
    requestId,
    traceparent: exchange.traceparent,
    caller: session?.caller ?? anonymous,
    sourceAddress: clientAddressOf(incoming.socket),
    deadline: new Date(Date.now() + leftMs),
    positions,
  }
  return withCancellation(members, {
    isCancelled: () => exchange.abortReason !== undefined,
    reason: () => exchange.abortReason,
    listen: (listener) => onEnd(exchange, listener),
    signal: () => signalOf(exchange),
  })
}

/** Calls `listener` once when the calls are cancelled, or now if they are. Returns a function that removes the listener. */
function onEnd(exchange: Exchange, listener: () => void): () => void {
  if (exchange.abortReason !== undefined) {
    listener()
    return () => undefined
  }
  exchange.endListeners ??= new Set()
  const { endListeners } = exchange
  const entry = (): void => listener() // the same function may be registered twice
  endListeners.add(entry)
  return () => endListeners.delete(entry)
}

function signalOf(exchange: Exchange): AbortSignal {
  if (!exchange.abort) {
    exchange.abort = new AbortController()
    if (exchange.abortReason !== undefined) exchange.abort.abort(exchange.abortReason)
  }
  return exchange.abort.signal
}

const firstOf = (header: string | readonly string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : header?.[0]
