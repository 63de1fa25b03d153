import type { Fault } from '@overlay/rpc'
import type { BodySpec, JsonSchema } from './body.js'
import type { Parameter } from './query.js'
import type { Params, RequestContext } from './request-context.js'

/** The callers that an operation admits. `partial`: also a session whose second factor is outstanding. */
export type Access = 'none' | 'partial' | 'full' | 'admin'

export type Answer = Response | Promise<Response>
export type Handler = (c: RequestContext, params: Params) => Answer

/** Input and output of one operation: checked by the pipeline, described by the served documents. */
export interface Endpoint {
  readonly handle: (c: RequestContext, params: Params, body: never) => Answer
  readonly body?: BodySpec
  readonly query?: readonly Parameter[]
  /** Content types other than JSON: `Accept` is then not checked. */
  readonly produces?: readonly string[]
  /** For the served documents. */
  readonly about?: {
    readonly status?: 200 | 201 | 202
    readonly data?: JsonSchema
    readonly page?: true
    /** wire: `data` is the whole answer. */
    readonly bare?: true
    /** wire: null in a few answers. */
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
export const takes = <B>(
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
