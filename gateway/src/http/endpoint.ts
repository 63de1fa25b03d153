import type { IncomingMessage } from 'node:http'
import {
  type Access,
  type Answer,
  asEndpoint,
  type Endpoint,
  type MountedApi,
  type Protocol,
  type RequestContext,
} from './exchange.js'

export interface MountedOperation {
  readonly operation: string
  readonly access: Access
  readonly endpoint: Endpoint
}

/** All operations of one path, by method. */
export interface Route {
  readonly api: string
  readonly protocol: Protocol | undefined
  readonly methods: Readonly<Record<string, MountedOperation>>
  /** The methods, for the answer to any other. */
  readonly allowed: string
  readonly hasParams: boolean
}

export function routesOf({ api, root, protocol, operations, handlers }: MountedApi): Map<string, Route> {
  const byPath = new Map<string, Record<string, MountedOperation>>()
  for (const [operation, access] of Object.entries(operations)) {
    const handler = handlers[operation]
    if (!handler) throw new Error(`${api}: ${operation} has no handler`)
    const [method = '', path = ''] = operation.split(' ')
    const fullPath = path === '/' ? root : root + path
    const methods = byPath.get(fullPath) ?? {}
    methods[method] = { operation, access, endpoint: asEndpoint(handler) }
    byPath.set(fullPath, methods)
  }
  return new Map(
    [...byPath].map(([path, methods]) => {
      const allowed = Object.keys(methods).sort().join(',')
      return [path, { api, protocol, methods, allowed, hasParams: path.includes('{') }]
    }),
  )
}

/** Content besides the APIs: open to everybody, answers GET and HEAD only. */
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
