export type Api = 'client' | 'management'

const ROOT = { client: '/edge/client/v1', management: '/edge/management/v1' } as const

/** Where an API begins; its operations' paths follow. */
export const rootOf = (api: Api): string => ROOT[api]

/**
 * The path that an operation is found by.
 * wire: repeated slashes and one trailing slash do no harm; `/edge/v1` and paths without a prefix mean the client API.
 */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  const raw = query < 0 ? target : target.slice(0, query)
  const single = raw.includes('//') ? raw.replace(/\/{2,}/g, '/') : raw
  const path = single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single
  if (path === '/') return ROOT.client
  if (path === '/edge/v1' || path.startsWith('/edge/v1/')) return ROOT.client + path.slice('/edge/v1'.length)
  if (path === '/.well-known/est/cacerts') return ROOT.client + path
  if (/^\/(edge|fabric|\.well-known)/.test(path)) return path
  return ROOT.client + path
}

/** Which API a path belongs to; paths outside both are answered like the client API's. */
export const apiOf = (path: string): Api => (path.startsWith(ROOT.management) ? 'management' : 'client')
