import type { Operation } from '../api/operations.js'
import type { BodySpec, JsonSchema } from './body.js'
import type { Parameter } from './query.js'
import type { Params, RequestContext } from './request-context.js'

export type Answer = Response | Promise<Response>
export type Handler = (c: RequestContext, params: Params) => Answer

/** What one operation takes and gives. The frame checks it before the permission, the served documents tell it. */
export interface Endpoint {
  readonly handle: (c: RequestContext, params: Params, body: never) => Answer
  readonly body?: BodySpec
  readonly query?: readonly Parameter[]
  /** Other than JSON: then `Accept` is not looked at. */
  readonly produces?: readonly string[]
  /** For the served documents. */
  readonly about?: {
    readonly status?: 200 | 201 | 202
    readonly data?: JsonSchema
    readonly page?: true
    /** wire: a few answers have null in its place. */
    readonly meta?: null
    /** What the published documents call the whole answer, where that does not follow from `data`. */
    readonly envelope?: string
    /** JSON with a charset. */
    readonly type?: string
    /** Statuses of refusals that do not follow from method, path and level. */
    readonly fails?: readonly number[]
  }
}

/** One collection's part of an API, by operation. */
export type Handlers = { readonly [O in Operation]?: Handler | Endpoint }

/** An operation with a body; the handler sees it checked. */
export const takes = <B>(
  body: BodySpec<B>,
  handle: (c: RequestContext, params: Params, body: B) => Answer,
  more: Omit<Endpoint, 'handle' | 'body'> = {},
): Endpoint => ({ ...more, body, handle })

export const asEndpoint = (handler: Handler | Endpoint): Endpoint =>
  typeof handler === 'function' ? { handle: handler } : handler
