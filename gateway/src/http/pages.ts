import type { IncomingMessage } from 'node:http'
import type { Answer, RequestContext } from './exchange.js'

/** Content beside the APIs: open to everybody, answers GET and HEAD only. */
export interface Page {
  /** The name in log and metrics: `GET /docs/{api}`. */
  readonly operation: string
  /** The pattern of paths that it serves, in the syntax of Hono. */
  readonly pattern: string
  readonly handle: (c: RequestContext) => Answer
}

export interface Pages {
  readonly pages: readonly Page[]
  /** The path by which a page is found. Undefined: the request is for an API. */
  pathOf(incoming: IncomingMessage): string | undefined
}

export const noPages: Pages = { pages: [], pathOf: () => undefined }
