import type { BodySpec, JsonSchema } from './body.js'
import type { Parameter } from './query.js'
import type { Params, RequestContext } from './request-context.js'

/** The callers that an operation admits. `partial`: also a session whose second factor is outstanding. */
export type Access = 'none' | 'partial' | 'full' | 'admin'

export type Answer = Response | Promise<Response>
export type Handler = (c: RequestContext, params: Params) => Answer

/** The input and output of one operation. The pipeline checks the input before the permission; the served documents describe both. */
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

/** An operation with a body; the handler sees it checked. */
export const takes = <B>(
  body: BodySpec<B>,
  handle: (c: RequestContext, params: Params, body: B) => Answer,
  more: Omit<Endpoint, 'handle' | 'body'> = {},
): Endpoint => ({ ...more, body, handle })

export const asEndpoint = (handler: Handler | Endpoint): Endpoint =>
  typeof handler === 'function' ? { handle: handler } : handler

/** Operations below one root, the callers that each admits, and their handlers. */
export interface MountedApi<Name extends string = string> {
  readonly api: Name
  readonly root: string
  readonly operations: Readonly<Record<string, Access>>
  readonly handlers: Readonly<Record<string, Handler | Endpoint | undefined>>
}
