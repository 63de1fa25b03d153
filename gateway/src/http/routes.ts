import { type Access, asEndpoint, type Endpoint, type MountedApi, type Protocol } from './exchange.js'

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
