import type { Health } from '@overlay/process'
import type { Page, Pages } from '../http/endpoint.js'
import type { MountedApi } from '../http/exchange.js'
import { sendHtml } from '../http/html.js'
import { accepts } from '../http/negotiate.js'
import type { Api } from '../http/paths.js'
import type { PreparedBody } from '../http/send.js'
import { openApi3, titles } from '../openapi/document.js'
import { consolePages, isConsolePath } from './console.js'
import { landingPage, sendHealth } from './pages.js'
import { type Document, referencePage } from './reference.js'

export interface WebOptions {
  /** `host:port` of the APIs. */
  readonly address: string
  readonly apis: readonly MountedApi<Api>[]
  readonly health: () => Health
  /** Directory of the web console. */
  readonly console: string | undefined
}

/**
 * The pages for browsers besides the APIs.
 * @throws Error if the directory of the console has no console
 */
export async function openWeb({ address, apis, health, console }: WebOptions): Promise<Pages> {
  const consoles = console === undefined ? [] : await consolePages(console)
  const references = new Map(apis.map(({ api }) => [`/docs/${api}`, titles[api]]))
  const landing = landingPage({ address, hasConsole: console !== undefined, references })
  const pages: readonly Page[] = [
    {
      operation: 'GET /',
      pattern: '/',
      handle: (c) => sendHtml(c, landing),
    },
    { operation: 'GET /health-checks', pattern: '/health-checks', handle: (c) => sendHealth(c, health()) },
    ...apis.map((api) => reference(api, address)),
    ...consoles,
  ]
  const paths = new Set(['/health-checks', ...references.keys()])
  return {
    pages,
    pathOf(incoming) {
      const { url = '' } = incoming
      if (url.startsWith('/edge/')) return undefined
      const path = url.split('?', 1)[0] ?? ''
      // wire: GET / without text/html in Accept is GET /version of the client API
      if (path === '/') return accepts(incoming, 'text/html') ? path : undefined
      if (consoles.length > 0 && isConsolePath(path)) return path
      const plain = path.endsWith('/') ? path.slice(0, -1) : path
      return paths.has(plain) ? plain : undefined
    },
  }
}

/** Built at the first request. */
function reference(api: MountedApi<Api>, address: string): Page {
  let page: PreparedBody | undefined
  const accessOf = (operation: string) => {
    const access = api.operations[operation]
    if (!access) throw new Error(`the document has ${operation}, which is no operation`)
    return access
  }
  return {
    operation: 'GET /docs/{api}',
    pattern: `/docs/${api.api}`,
    handle: (c) => {
      page ??= referencePage(openApi3(api, address) as Document, accessOf)
      return sendHtml(c, page)
    },
  }
}
