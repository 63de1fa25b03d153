import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { JsonSchema } from '@overlay/model'
import type { Context, Fault, FaultCode, Positions } from '@overlay/rpc'
import type { Context as HonoContext } from 'hono'
import type { Session } from './session.js'

/** One request and its response, from the first byte to the log line. */
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
  /** Of an operation that needs one. */
  session?: Session
  /** The session whose expiry the response reports, even if the operation requires none. */
  reportedSession?: Session | undefined
  /** Of the API, where it is not the one with envelopes. */
  protocol?: Protocol | undefined
  /** Parsed at the first use: `queryOf`. */
  query?: URLSearchParams
  /** The content type of refusals, where it is not JSON. */
  refusalType?: string | undefined
  /** Of the answer, for log and metrics. */
  faultCode?: FaultCode
  /** An unexpected failure, for the log only. */
  error?: unknown
  /** Headers of the response that do not depend on its contents. */
  head: OutgoingHttpHeaders
  calls: CallOptions
  /** Of the calls to services. Created for the first one. */
  context?: Context
  traceparent?: string
  /** Aborted when the response is no longer needed: cancels the calls. */
  readonly abort: AbortController
  /** Expires a request whose response needs more than memory. */
  timeout?: NodeJS.Timeout
}

/** What the calls to services of all requests share. */
export interface CallOptions {
  /** From the start of the request. */
  readonly limitMs: number
  /** The positions that answers must not be older than. */
  readonly positions: () => Positions
  /** Finds the session of a request again. Rejects with the fault that refuses the request now. */
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
  head: {},
  calls: noCalls,
  abort: new AbortController(),
})

/** What Hono's context carries for one request: `c.env`. */
export interface Env {
  readonly Bindings: Exchange
}

/** One request under way. */
export type RequestContext = HonoContext<Env>

/** Path parameters, by the names in the table of operations. */
export type Params = Readonly<Record<'id' | 'serviceId', string>>

/** The callers that an operation admits. `partial`: also a session whose second factor is outstanding. */
export type Access = 'none' | 'partial' | 'full' | 'admin'

export type Answer = Response | Promise<Response>
export type Handler = (c: RequestContext, params: Params) => Answer

/** Input and output of one operation: checked by the pipeline, described by the served documents. */
export interface Endpoint {
  readonly handle: (c: RequestContext, params: Params, body: never) => Answer
  readonly body?: BodySpec
  readonly query?: readonly Parameter[]
  /** For the served documents. */
  readonly headers?: readonly Parameter[]
  /** Content types other than JSON: `Accept` is then not checked. */
  readonly produces?: readonly string[]
  /** For the served documents. */
  readonly response?: {
    readonly status?: 200 | 201 | 202
    readonly data?: JsonSchema
    readonly page?: true
    /** wire: `data` is the whole answer. */
    readonly bare?: true
    /** wire: `meta` is null, not an empty object, in a few responses. */
    readonly meta?: null
    /** Name of the whole answer in the published documents, where it does not follow from `data`. */
    readonly envelope?: string
    /** JSON with a charset. */
    readonly type?: string
    /** Statuses of refusals that do not follow from method, path and level. */
    readonly fails?: readonly number[]
  }
}

/** An operation with a body, which the handler receives checked. */
export const acceptBody = <B>(
  body: BodySpec<B>,
  handle: (c: RequestContext, params: Params, body: B) => Answer,
  more: Omit<Endpoint, 'handle' | 'body'> = {},
): Endpoint => ({ ...more, body, handle })

export const asEndpoint = (handler: Handler | Endpoint): Endpoint =>
  typeof handler === 'function' ? { handle: handler } : handler

/** How an API differs that does not speak JSON in envelopes. */
export interface Protocol {
  /** Checks headers and query before the body is read. Throws the fault that refuses the request. */
  check(c: RequestContext, endpoint: Endpoint): void
  /** The answer to a failure. */
  refuse(c: RequestContext, fault: Fault): Response
}

/** Operations below one root, the callers that each admits, and their handlers. */
export interface MountedApi<Name extends string = string> {
  readonly api: Name
  readonly root: string
  readonly protocol?: Protocol
  readonly operations: Readonly<Record<string, Access>>
  readonly handlers: Readonly<Record<string, Handler | Endpoint | undefined>>
}

/** The body of an operation. `name` is its name in the documents and in the refusal of an empty body. */
export interface BodySpec<B = unknown> {
  readonly name: string
  readonly schema: JsonSchema
  readonly required: boolean
  /** Content types, where not only JSON: the handler receives the bytes. The schema describes JSON bodies. */
  readonly consumes?: readonly string[]
  /** Builds the argument of the handler from the checked value and the value as sent. */
  readonly read: (checked: unknown, sent: unknown) => B
}

/** One query parameter of an operation. Others are ignored. */
export interface Parameter {
  readonly name: string
  readonly description: string
  readonly type: 'string' | 'integer' | 'strings'
  readonly required?: true
  readonly oneOf?: readonly string[]
  readonly format?: 'uuid'
  /** Another parameter and its value, with which this one is not checked. */
  readonly uncheckedWith?: readonly [name: string, value: string]
}
