import { clientAddressOf } from '@overlay/platform/tls'
import { type Caller, type Context, type Positions, system, traceparentOf } from '@overlay/rpc'
import type { RequestContext } from './request-context.js'

/** State of the calls to services that one request makes. Each part is created when the first call needs it. */
export interface Calls {
  readonly startedMs: number
  readonly limitMs: number
  /** The positions that answers must not be older than. */
  readonly positions: () => Positions
  context: Context | undefined
  traceparent: string | undefined
  controller: AbortController | undefined
  abortReason: unknown
}

export const openCalls = (positions: () => Positions, limitMs: number): Calls => ({
  startedMs: Date.now(),
  limitMs,
  positions,
  context: undefined,
  traceparent: undefined,
  controller: undefined,
  abortReason: undefined,
})

/** For calls to services. All calls of a request share one deadline. */
export function callContext(c: RequestContext): Context {
  const calls = c.get('calls')
  calls.context ??= newContext(c, calls, calls.startedMs)
  return calls.context
}

/** The same with a deadline of its own: for the pages of a long answer. */
export const freshCallContext = (c: RequestContext): Context => newContext(c, c.get('calls'), Date.now())

/** Cancels all calls under way: the answer is no longer needed. */
export function abortCalls(calls: Calls, reason: unknown): void {
  calls.abortReason ??= reason
  calls.controller?.abort(reason)
}

const anonymous: Caller = { ...system, isAdmin: false }

function newContext(c: RequestContext, calls: Calls, startedMs: number): Context {
  const { incoming } = c.env
  calls.controller ??= new AbortController()
  if (calls.abortReason !== undefined) calls.controller.abort(calls.abortReason)
  calls.traceparent ??= traceparentOf(firstOf(incoming.headers.traceparent))
  return {
    requestId: c.get('requestId'),
    traceparent: calls.traceparent,
    caller: c.get('session')?.caller ?? anonymous,
    sourceAddress: clientAddressOf(incoming.socket),
    deadline: new Date(startedMs + calls.limitMs),
    signal: calls.controller.signal,
    positions: calls.positions(),
  }
}

const firstOf = (header: string | readonly string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : header?.[0]
