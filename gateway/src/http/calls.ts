import { clientAddressOf } from '@overlay/process/tls'
import { type Caller, type Context, type Positions, system, traceparentOf } from '@overlay/rpc'
import type { Exchange, RequestContext } from './exchange.js'

/** For calls to services. All calls of a request share one deadline. */
export function callContext({ env }: RequestContext): Context {
  env.context ??= newContext(env, 0)
  return env.context
}

/**
 * The same with a deadline of its own: for a page of a long response. One outlives many sessions, so each page needs a
 * session that would be admitted now, and is for the caller as it is by then.
 */
export async function freshCallContext({ env }: RequestContext): Promise<Context> {
  await env.calls.readmit(env)
  return newContext(env, performance.now() - env.startedMs)
}

/** The same for a response that is not older than these positions. */
export function callContextAt({ env }: RequestContext, positions: Positions): Context {
  return newContext(env, 0, { ...env.calls.positions(), ...positions })
}

/** The same for a response that contains the writes at these positions, and at no others. */
export const callContextOf = ({ env }: RequestContext, positions: Positions): Context =>
  newContext(env, 0, positions)

const anonymous: Caller = { ...system, isAdmin: false }

function newContext(exchange: Exchange, laterMs: number, positions = exchange.calls.positions()): Context {
  const { incoming, requestId, session, calls, abort } = exchange
  exchange.traceparent ??= traceparentOf([incoming.headers.traceparent ?? []].flat()[0])
  const leftMs = exchange.startedMs + laterMs + calls.limitMs - performance.now()
  return {
    requestId,
    traceparent: exchange.traceparent,
    caller: session?.caller ?? anonymous,
    sourceAddress: clientAddressOf(incoming.socket),
    deadline: new Date(Date.now() + leftMs),
    positions,
    signal: abort.signal,
  }
}
