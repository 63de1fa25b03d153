import type { HttpBindings } from '@hono/node-server'
import { asFault, Fault, type Positions } from '@overlay/rpc'
import { Hono, type Context as HttpContext } from 'hono'
import { expiryText, type Session } from '../cache/session.js'
import type { Sessions } from '../cache/sessions.js'
import { failure } from './answer.js'
import { type BodyLimits, bodyOf } from './body.js'
import { allowOrigin, preflight } from './cors.js'
import { type Access, asEndpoint, type Endpoint, type MountedApi } from './endpoint.js'
import { checkAccept, checkContentType } from './negotiate.js'
import { checkQuery } from './query.js'
import { openRequestContext, type Params, type RequestContext } from './request-context.js'

export type Env = { Bindings: HttpBindings }

/** One answered request, for log and metrics. */
export interface AccessRecord {
  readonly c: RequestContext
  /** As the table names it; empty when nothing is there. */
  readonly operation: string
  readonly status: number
  readonly seconds: number
  readonly aborted: boolean
}

export interface Pipeline {
  readonly sessions: Pick<Sessions, 'find' | 'known'>
  /** Value of the header `server`. */
  readonly serverName: string
  /** The path by which an operation is found, and the API that a path belongs to. */
  readonly paths: { readonly pathOf: (target: string) => string; readonly apiOf: (path: string) => string }
  /** The positions that answers must not be older than. */
  readonly positions: () => Positions
  readonly instanceId: string
  readonly requestMs: number
  readonly body: BodyLimits
  /** Where no session is needed. */
  readonly openBody: BodyLimits
  seen(request: AccessRecord): void
  /** No more requests on this connection: the process is about to end. */
  closing(): boolean
}

interface Mounted {
  readonly operation: string
  readonly access: Access
  readonly endpoint: Endpoint
}

interface Route {
  readonly api: string
  readonly methods: Readonly<Record<string, Mounted>>
  readonly allowed: string
  readonly hasParams: boolean
}

/** Puts the operations of the tables behind one fetch function. An operation without a handler stops the start. */
export function mount(frame: Pipeline, apis: readonly MountedApi[]): Hono<Env> {
  const app = new Hono<Env>({
    getPath: (request, options) => frame.paths.pathOf(targetOf(request, options?.env)),
  })
  app.options('*', ({ env: { incoming, outgoing } }) => {
    brand(frame, outgoing)
    return new Response(null, { status: preflight(incoming, outgoing) })
  })
  for (const api of apis)
    for (const [path, route] of routesOf(api))
      app.all(path.replace(/\{(\w+)\}/g, ':$1'), (hono) => serve(frame, route, hono))
  app.notFound((hono) => {
    const { incoming, outgoing } = hono.env
    const path = frame.paths.pathOf(incoming.url ?? '/')
    const c = begin(frame, { api: frame.paths.apiOf(path), operation: '', path }, hono)
    allowOrigin(incoming, outgoing)
    sayKnownExpiry(frame, c)
    return failure(c, unknownPath(path))
  })
  return app
}

const unknownPath = (path: string): Fault => new Fault('NOT_FOUND', `path ${path} was not found`)

const targetOf = (request: Request, env: unknown): string =>
  (env as HttpBindings | undefined)?.incoming.url ?? request.url

function routesOf({ api, root, operations, handlers }: MountedApi): Map<string, Route> {
  const byPath = new Map<string, Record<string, Mounted>>()
  for (const [operation, access] of Object.entries(operations)) {
    const handler = handlers[operation]
    if (!handler) throw new Error(`${api}: ${operation} has no handler`)
    const [method = '', path = ''] = operation.split(' ')
    const full = path === '/' ? root : root + path
    const methods = byPath.get(full) ?? {}
    methods[method] = { operation, access, endpoint: asEndpoint(handler) }
    byPath.set(full, methods)
  }
  return new Map(
    [...byPath].map(([path, methods]) => {
      const allowed = Object.keys(methods).sort().join(',')
      return [path, { api, methods, allowed, hasParams: path.includes('{') }]
    }),
  )
}

function brand({ serverName, instanceId, closing }: Pipeline, outgoing: HttpBindings['outgoing']): void {
  outgoing.setHeader('server', serverName)
  outgoing.setHeader('ziti-instance-id', instanceId)
  if (closing()) outgoing.setHeader('connection', 'close')
}

const noParams = {} as Params

function begin(
  frame: Pipeline,
  { api, operation, path }: { readonly api: string; readonly operation: string; readonly path: string },
  { env: { incoming, outgoing } }: HttpContext<Env>,
): RequestContext {
  const startedMs = performance.now()
  const c = openRequestContext(
    api,
    path,
    incoming as never,
    outgoing as never,
    frame.positions,
    frame.requestMs,
  )
  brand(frame, outgoing)
  outgoing.once('close', () => {
    const aborted = !outgoing.writableFinished
    if (aborted) c.giveUp(new Error('the client went away'))
    const seconds = (performance.now() - startedMs) / 1000
    frame.seen({ c, operation, status: outgoing.statusCode, seconds, aborted })
  })
  return c
}

/** The order of checks is wire contract: path, method, session, content type, accept, query and body, permission. */
function serve(frame: Pipeline, route: Route, hono: HttpContext<Env>): Response | Promise<Response> {
  const { incoming, outgoing } = hono.env
  const { method = '' } = incoming
  const mounted = route.methods[method]
  const c = begin(frame, { api: route.api, operation: mounted?.operation ?? '', path: hono.req.path }, hono)
  allowOrigin(incoming as never, outgoing as never)
  try {
    if (!mounted || mounted.access === 'none') sayKnownExpiry(frame, c)
    // no stored id can hold one
    if (route.hasParams && c.path.includes('%00')) throw unknownPath(c.path)
    if (!mounted)
      throw new Fault('METHOD_NOT_ALLOWED', `method ${method} is not allowed, but [${route.allowed}] are`)
    const params = route.hasParams ? (hono.req.param() as Params) : noParams
    if (mounted.access === 'none') return settle(frame, c, admitted(frame, c, mounted, params))
    const session = sessionOf(frame, c)
    if (session instanceof Promise)
      return settle(
        frame,
        c,
        session.then((found) => proceed(frame, c, mounted, params, found)),
      )
    return settle(frame, c, proceed(frame, c, mounted, params, session))
  } catch (err) {
    return refused(c, err)
  }
}

function tokenOf({ incoming }: RequestContext): string {
  const token = incoming.headers['zt-session']
  return typeof token === 'string' ? token : ''
}

function sessionOf({ sessions }: Pipeline, c: RequestContext): Session | Promise<Session> {
  const token = tokenOf(c)
  if (token !== '') return sessions.find(token)
  throw new Fault('UNAUTHORIZED', 'unauthenticated for invalid credentials')
}

function proceed(
  frame: Pipeline,
  c: RequestContext,
  mounted: Mounted,
  params: Params,
  session: Session,
): Response | Promise<Response> {
  c.session = session
  sayExpiry(c, session)
  return admitted(frame, c, mounted, params)
}

/** Where no session is needed nobody is asked about it: only one that is remembered is told of. */
function sayKnownExpiry({ sessions }: Pipeline, c: RequestContext): void {
  const token = tokenOf(c)
  const session = token === '' ? undefined : sessions.known(token)
  if (session) sayExpiry(c, session)
}

/** wire: on every answer to a valid session. */
export function sayExpiry({ outgoing }: RequestContext, session: Session): void {
  outgoing.setHeader('expiration-seconds', session.timeoutSeconds)
  outgoing.setHeader('expires-at', expiryText(session))
}

function admitted(
  frame: Pipeline,
  c: RequestContext,
  { endpoint, access }: Mounted,
  params: Params,
): Response | Promise<Response> {
  const { body, query = [], produces, handle } = endpoint
  checkContentType(c.incoming, body?.consumes)
  if (!produces) checkAccept(c.incoming)
  checkQuery(c, query)
  if (!body) {
    permit(access, c.session)
    return handle(c, params, undefined as never)
  }
  return bodyOf(c, body, access === 'none' ? frame.openBody : frame.body).then((value) => {
    permit(access, c.session)
    return handle(c, params, value as never)
  })
}

/** wire: there is no 403; who may not do it is told what a stranger is told. */
function permit(access: Access, session: Session | undefined): void {
  if (access === 'none') return
  if (!session) throw new Fault('UNAUTHORIZED')
  if (access === 'partial') return
  // differs: admins too need their second factor
  if (session.isPartial || (access === 'admin' && !session.isAdmin)) throw new Fault('UNAUTHORIZED')
}

/** Waits for the answer no longer than a request may take. */
function settle(
  { requestMs }: Pipeline,
  c: RequestContext,
  answer: Response | Promise<Response>,
): Response | Promise<Response> {
  if (!(answer instanceof Promise)) return answer
  return new Promise((resolve) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      const late = new Fault('TIMEOUT')
      c.giveUp(late)
      if (!c.outgoing.headersSent) resolve(refused(c, late))
    }, requestMs)
    answer.then(
      (response) => {
        clearTimeout(timer)
        resolve(response)
      },
      (err: unknown) => {
        clearTimeout(timer)
        if (!isLate) resolve(refused(c, err)) // else the refusal may be sent: nothing can be set on it any more
      },
    )
  })
}

function refused(c: RequestContext, err: unknown): Response {
  const fault = asFault(err)
  if (!(err instanceof Fault)) c.broken = err
  return failure(c, fault)
}
