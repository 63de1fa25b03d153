export type Api = 'client' | 'management' | 'fabric' | 'audit'

const ROOT = {
  client: '/edge/client/v1',
  management: '/edge/management/v1',
  fabric: '/fabric/v1',
  audit: '/audit/v1',
} as const

/** The path before all operations of an API. */
export const rootOf = (api: Api): string => ROOT[api]

/**
 * The path by which an operation is found.
 * wire: repeated slashes and one trailing slash are ignored; `/edge/v1` and paths without a prefix mean the client API.
 */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  const raw = query < 0 ? target : target.slice(0, query)
  const single = raw.includes('//') ? raw.replace(/\/{2,}/g, '/') : raw
  const path = single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single
  if (path === '/') return ROOT.client
  if (path === '/edge/v1' || path.startsWith('/edge/v1/')) return ROOT.client + path.slice('/edge/v1'.length)
  if (path === '/.well-known/est/cacerts') return ROOT.client + path
  if (
    /^\/(edge|fabric|oidc|\.well-known|status(\/(login|code|logout))?$)/.test(path) ||
    isBelow(ROOT.audit, path)
  )
    return path
  return ROOT.client + path
}

/** Paths that exist only for callers with a session. Others learn neither which paths exist, nor their methods. */
export const isClosed = (path: string): boolean => isBelow(ROOT.fabric, path) || isBelow(ROOT.audit, path)

const isBelow = (root: string, path: string): boolean => path === root || path.startsWith(`${root}/`)

/** The API that a path belongs to. Paths outside all count as the client API's. */
export function apiOf(path: string): Api | 'oidc' {
  if (path.startsWith(ROOT.management)) return 'management'
  if (path.startsWith(ROOT.fabric)) return 'fabric'
  if (isBelow(ROOT.audit, path)) return 'audit'
  return path === '/oidc' || path.startsWith('/oidc/') ? 'oidc' : 'client'
}
