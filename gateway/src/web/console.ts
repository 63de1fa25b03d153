import { createHash } from 'node:crypto'
import { Fault } from '@overlay/rpc'
import { getMimeType } from 'hono/utils/mime'
import type { Page } from '../http/endpoint.js'
import type { RequestContext } from '../http/exchange.js'
import { accepts } from '../http/negotiate.js'
import { sendPrepared } from '../http/send.js'
import { write } from '../http/write.js'
import { MAX_HEADER_ENTRIES } from '../limits.js'
import { openFolder, type StoredFile } from './folder.js'

const ROOT = '/zac'
const INDEX = 'index.html'

/** wire: the paths of the console. Consoles before 4.5 also name their assets below the root. */
export const isConsolePath = (path: string): boolean => /^\/(zac|assets)(\/|$)/.test(path)

/**
 * Serves a built web console, a single-page application.
 * @throws Error if the directory has no `index.html` that this process can read
 */
export async function consolePages(directory: string): Promise<readonly Page[]> {
  const folder = openFolder(directory)
  const index = await folder.find(INDEX).catch((err: Error) => {
    throw new Error(`OVERLAY_CONSOLE: ${err.message}`)
  })
  if (!index)
    throw new Error(
      `OVERLAY_CONSOLE: '${directory}' has no ${INDEX}. It must name the directory of a built web console`,
    )

  async function serve(c: RequestContext, path: string, mayBeRoute: boolean): Promise<Response> {
    const file = path === '' ? undefined : await folder.find(path)
    if (file) return sendFile(c, file, path)
    const page = mayBeRoute ? await folder.find(INDEX) : undefined
    if (!page) throw new Fault('NOT_FOUND', `path ${c.env.path} was not found`)
    return sendFile(c, page, INDEX)
  }

  return [
    {
      operation: `GET ${ROOT}/{file}`,
      pattern: `${ROOT}/*`,
      handle: (c) => {
        if (c.env.path === ROOT) return redirect(c)
        const path = decoded(c, c.env.path.slice(ROOT.length + 1))
        return serve(c, path, isRoute(c, path))
      },
    },
    {
      operation: 'GET /assets/{file}',
      pattern: '/assets/*',
      handle: (c) => serve(c, decoded(c, c.env.path.slice(1)), false),
    },
  ]
}

// differs: without the slash, relative addresses in the page would lead outside the console
function redirect(c: RequestContext): Response {
  const { url = '' } = c.env.incoming
  const mark = url.indexOf('?')
  const location = `${ROOT}/${mark < 0 ? '' : url.slice(mark)}`
  return write(c, 302, { location, 'cache-control': 'no-cache' }, null)
}

function decoded(c: RequestContext, path: string): string {
  const unknown = new Fault('NOT_FOUND', `path ${c.env.path} was not found`)
  let text: string
  try {
    text = decodeURIComponent(path)
  } catch {
    throw unknown
  }
  if (text.includes('\0') || text.split(/[/\\]/).includes('..')) throw unknown
  return text
}

/**
 * Whether the console itself may know the path, so that a deep link opens it.
 * differs: a missing script or image is 404. The original sends the page instead, which browsers cannot execute.
 */
const isRoute = ({ env: { incoming } }: RequestContext, path: string): boolean =>
  accepts(incoming, 'text/html') || getMimeType(path) === undefined || path === INDEX

function sendFile(c: RequestContext, file: StoredFile, path: string): Response | Promise<Response> {
  const { incoming, outgoing } = c.env
  outgoing.setHeader('etag', file.etag)
  outgoing.setHeader('cache-control', isHashed(path) ? 'public, max-age=31536000, immutable' : 'no-cache')
  outgoing.setHeader('x-content-type-options', 'nosniff')
  outgoing.setHeader('referrer-policy', 'same-origin')
  if (file.type.startsWith('text/html')) {
    outgoing.setHeader('x-frame-options', 'DENY')
    outgoing.setHeader('content-security-policy', policyOf(file))
  } else if (file.type.startsWith('image/svg'))
    outgoing.setHeader('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; sandbox")
  if (matches(incoming.headers['if-none-match'], file.etag)) return write(c, 304, {}, null)
  return sendPrepared(c, file)
}

const matches = (header: string | undefined, etag: string): boolean =>
  (header ?? '')
    .split(',', MAX_HEADER_ENTRIES)
    .some((text) => text.trim() === '*' || text.trim().replace(/^(W\/)?/, 'W/') === etag)

/** Angular names the files of a build by their content: `main.3f2a1b9c8d7e6f5a.js`, `chunk-ABCD2345.js`. */
const isHashed = (path: string): boolean =>
  /(\.[0-9a-f]{16,20}|-[0-9A-Z]{8})\.(css|js|mjs|woff2?|[ot]tf|eot|svg|png|jpe?g|gif|webp)$/.test(path)

const policies = new WeakMap<StoredFile, string>()

/**
 * Admits the scripts of the folder and those in the page, by their hashes. The console needs styles without hashes,
 * fonts of Google and tiles of maps, and it can manage controllers and use identity providers elsewhere.
 */
function policyOf(page: StoredFile): string {
  let policy = policies.get(page)
  if (policy === undefined) {
    const scripts = inlineScripts(page.bytes.toString()).map(
      (script) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
    )
    policy = [
      "default-src 'self'",
      ['script-src', "'self'", "'unsafe-eval'", "'unsafe-hashes'", ...new Set(scripts)].join(' '),
      "style-src 'self' 'unsafe-inline' https://fonts.googleapis.com",
      "font-src 'self' data: https://fonts.gstatic.com",
      "img-src 'self' data: blob: https:",
      "connect-src 'self' https:",
      "worker-src 'self' blob:",
      "object-src 'none'",
      "base-uri 'self'",
      "form-action 'self' https:",
      "frame-ancestors 'none'",
    ].join('; ')
    policies.set(page, policy)
  }
  return policy
}

/** The contents of script elements and event handlers, as written. */
function inlineScripts(html: string): string[] {
  const elements = html.matchAll(/<script\b(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/gi)
  const handlers = html.matchAll(/<[a-z][^>]*\son[a-z]+="([^"]*)"/gi)
  return [...elements, ...handlers].map(([, script = '']) => script)
}
