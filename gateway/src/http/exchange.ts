import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context, FaultCode, Positions } from '@overlay/rpc'
import type { Access, Protocol } from './endpoint.js'
import type { Session } from './session.js'

/** One request and its answer, from the first byte to the log line. One object of fixed shape is what reads cost least. */
export interface Exchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  /** Of `performance.now()`. */
  readonly startedMs: number
  requestId: string
  /** The path by which the operation is found. */
  path: string
  api: string
  /** By its name in the table of operations; empty for an unknown path or method. */
  operation: string
  /** The callers that the operation admits. */
  access: Access
  /** Headers of every answer, as pairs of name and value. */
  head: readonly string[]
  /** Of an operation that needs one. */
  session: Session | undefined
  /** The session whose end the answer tells, also where none is needed. */
  holder: Session | undefined
  /** Of the API, where it is not the one with envelopes. */
  protocol: Protocol | undefined
  /** Parsed at the first use: `queryOf`. */
  query: URLSearchParams | undefined
  /** The content type of refusals, where it is not JSON. */
  refusalType: string | undefined
  /** Of the answer, for log and metrics. */
  faultCode: FaultCode | undefined
  /** An unexpected failure, for the log only. */
  error: unknown
  calls: CallOptions
  /** Of the calls to services. Each part is created when the first call needs it. */
  context: Context | undefined
  traceparent: string | undefined
  abort: AbortController | undefined
  /** Of calls that observe the end without a signal. */
  endListeners: Set<() => void> | undefined
  /** Why the answer is no longer needed. */
  abortReason: unknown
}

/** What the calls to services of all requests share. */
export interface CallOptions {
  /** From the start of the request. */
  readonly limitMs: number
  /** The positions that answers must not be older than. */
  readonly positions: () => Positions
  /** Looks up the session of a request again. Rejects with the fault that refuses the request now. */
  readonly readmit: (exchange: Exchange) => Promise<void>
}

const noCalls: CallOptions = { limitMs: 0, positions: () => ({}), readmit: async () => undefined }

export const openExchange = (incoming: IncomingMessage, outgoing: ServerResponse): Exchange => ({
  incoming,
  outgoing,
  startedMs: performance.now(),
  requestId: '',
  path: '',
  api: '',
  operation: '',
  access: 'none',
  head: [],
  session: undefined,
  holder: undefined,
  protocol: undefined,
  query: undefined,
  refusalType: undefined,
  faultCode: undefined,
  error: undefined,
  calls: noCalls,
  context: undefined,
  traceparent: undefined,
  abort: undefined,
  endListeners: undefined,
  abortReason: undefined,
})
