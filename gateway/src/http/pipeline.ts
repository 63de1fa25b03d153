import type { HttpBindings } from '@hono/node-server'
import { asFault, Fault } from '@overlay/rpc'
import { Hono, type Context as HttpContext } from 'hono'
import { VERSION } from '../about.js'
import type { Access } from '../api/operations.js'
import type { OwnWrites } from '../cache/own-writes.js'
import { expiryText, type Session } from '../cache/session.js'
import type { Sessions } from '../cache/sessions.js'
import { failure } from './answer.js'
import { type BodyLimits, bodyOf } from './body.js'
import { allowOrigin, preflight } from './cors.js'
import { asEndpoint, type Endpoint, type Handler } from './endpoint.js'
import { checkAccept, checkContentType } from './negotiate.js'
import { type Api, apiOf, pathOf, rootOf } from './paths.js'
import { checkQuery } from './query.js'
import { type Ask, openAsk, type Params } from './request-context.js'

export type Env = { Bindings: HttpBindings }

/** One answered request, for log and metrics. */
export interface Seen {
  readonly ask: Ask
  /** As the table names it; empty when nothing is there. */
  readonly operation: string
  readonly status: number
  readonly seconds: number
  readonly aborted: boolean
}

export interface Frame {
  readonly sessions: Pick<Sessions, 'find' | 'known'>
  readonly own: OwnWrites
  readonly instanceId: string
  readonly requestMs: number
  readonly body: BodyLimits
  /** Where no session is needed. */
  readonly openBody: BodyLimits
  seen(request: Seen): void
  /** No more requests on this connection: the process is about to end. */
  closing(): boolean
}

export interface MountedApi {
  readonly api: Api
  /** Where it begins, if not where its name says. */
  readonly root?: string
  readonly operations: Readonly<Record<string, Access>>
  readonly handlers: Readonly<Record<string, Handler | Endpoint | undefined>>
}

interface Mounted {
  readonly operation: string
  readonly access: Access
  readonly endpoint: Endpoint
}

interface Route {
  readonly api: Api
  readonly methods: Readonly<Record<string, Mounted>>
  readonly allowed: string
  readonly hasParams: boolean
}

/** Puts the operations of the tables behind one fetch function. An operation without a handler stops the start. */
export function mount(frame: Frame, apis: readonly MountedApi[]): Hono<Env> {
  const app = new Hono<Env>({ getPath: (request, options) => pathOf(targetOf(request, options?.env)) })
  app.options('*', ({ env: { incoming, outgoing } }) => {
    brand(frame, outgoing)
    return new Response(null, { status: preflight(incoming, outgoing) })
  })
  for (const api of apis)
    for (const [path, route] of routesOf(api))
      app.all(path.replace(/\{(\w+)\}/g, ':$1'), (c) => serve(frame, route, c))
  app.notFound((c) => {
    const { incoming, outgoing } = c.env
    const path = pathOf(incoming.url ?? '/')
    const ask = begin(frame, { api: apiOf(path), operation: '', path }, c)
    allowOrigin(incoming, outgoing)
    sayKnownExpiry(frame, ask)
    return failure(ask, unknownPath(path))
  })
  return app
}

const unknownPath = (path: string): Fault => new Fault('NOT_FOUND', `path ${path} was not found`)

const targetOf = (request: Request, env: unknown): string =>
  (env as HttpBindings | undefined)?.incoming.url ?? request.url

function routesOf({ api, root = rootOf(api), operations, handlers }: MountedApi): Map<string, Route> {
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

function brand({ instanceId, closing }: Frame, outgoing: HttpBindings['outgoing']): void {
  outgoing.setHeader('server', SERVER)
  outgoing.setHeader('ziti-instance-id', instanceId)
  if (closing()) outgoing.setHeader('connection', 'close')
}

const SERVER = `ziti-controller/${VERSION}`
const noParams = {} as Params

function begin(
  frame: Frame,
  { api, operation, path }: { readonly api: Api; readonly operation: string; readonly path: string },
  { env: { incoming, outgoing } }: HttpContext<Env>,
): Ask {
  const startedMs = performance.now()
  const ask = openAsk(api, path, incoming as never, outgoing as never, frame.own.positions, frame.requestMs)
  brand(frame, outgoing)
  outgoing.once('close', () => {
    const aborted = !outgoing.writableFinished
    if (aborted) ask.giveUp(new Error('the client went away'))
    const seconds = (performance.now() - startedMs) / 1000
    frame.seen({ ask, operation, status: outgoing.statusCode, seconds, aborted })
  })
  return ask
}

/** The order of checks is wire contract: path, method, session, content type, accept, query and body, permission. */
function serve(frame: Frame, route: Route, c: HttpContext<Env>): Response | Promise<Response> {
  const { incoming, outgoing } = c.env
  const { method = '' } = incoming
  const mounted = route.methods[method]
  const ask = begin(frame, { api: route.api, operation: mounted?.operation ?? '', path: c.req.path }, c)
  allowOrigin(incoming as never, outgoing as never)
  try {
    if (!mounted || mounted.access === 'none') sayKnownExpiry(frame, ask)
    // no stored id can hold one
    if (route.hasParams && ask.path.includes('%00')) throw unknownPath(ask.path)
    if (!mounted)
      throw new Fault('METHOD_NOT_ALLOWED', `method ${method} is not allowed, but [${route.allowed}] are`)
    const params = route.hasParams ? (c.req.param() as Params) : noParams
    if (mounted.access === 'none') return settle(frame, ask, admitted(frame, ask, mounted, params))
    const session = sessionOf(frame, ask)
    if (session instanceof Promise)
      return settle(
        frame,
        ask,
        session.then((found) => proceed(frame, ask, mounted, params, found)),
      )
    return settle(frame, ask, proceed(frame, ask, mounted, params, session))
  } catch (err) {
    return refused(ask, err)
  }
}

function tokenOf({ incoming }: Ask): string {
  const token = incoming.headers['zt-session']
  return typeof token === 'string' ? token : ''
}

function sessionOf({ sessions }: Frame, ask: Ask): Session | Promise<Session> {
  const token = tokenOf(ask)
  if (token !== '') return sessions.find(token)
  throw new Fault('UNAUTHORIZED', 'unauthenticated for invalid credentials')
}

function proceed(
  frame: Frame,
  ask: Ask,
  mounted: Mounted,
  params: Params,
  session: Session,
): Response | Promise<Response> {
  ask.session = session
  sayExpiry(ask, session)
  return admitted(frame, ask, mounted, params)
}

/** Where no session is needed nobody is asked about it: only one that is remembered is told of. */
function sayKnownExpiry({ sessions }: Frame, ask: Ask): void {
  const token = tokenOf(ask)
  const session = token === '' ? undefined : sessions.known(token)
  if (session) sayExpiry(ask, session)
}

/** wire: on every answer to a valid session. */
export function sayExpiry({ outgoing }: Ask, session: Session): void {
  outgoing.setHeader('expiration-seconds', session.timeoutSeconds)
  outgoing.setHeader('expires-at', expiryText(session))
}

function admitted(
  frame: Frame,
  ask: Ask,
  { endpoint, access }: Mounted,
  params: Params,
): Response | Promise<Response> {
  const { body, query = [], produces, handle } = endpoint
  checkContentType(ask.incoming, body?.consumes)
  if (!produces) checkAccept(ask.incoming)
  checkQuery(ask, query)
  if (!body) {
    permit(access, ask.session)
    return handle(ask, params, undefined as never)
  }
  return bodyOf(ask, body, access === 'none' ? frame.openBody : frame.body).then((value) => {
    permit(access, ask.session)
    return handle(ask, params, value as never)
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
  { requestMs }: Frame,
  ask: Ask,
  answer: Response | Promise<Response>,
): Response | Promise<Response> {
  if (!(answer instanceof Promise)) return answer
  return new Promise((resolve) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      const late = new Fault('TIMEOUT')
      ask.giveUp(late)
      if (!ask.outgoing.headersSent) resolve(refused(ask, late))
    }, requestMs)
    answer.then(
      (response) => {
        clearTimeout(timer)
        resolve(response)
      },
      (err: unknown) => {
        clearTimeout(timer)
        if (!isLate) resolve(refused(ask, err)) // else the refusal may be sent: nothing can be set on it any more
      },
    )
  })
}

function refused(ask: Ask, err: unknown): Response {
  const fault = asFault(err)
  if (!(err instanceof Fault)) ask.broken = err
  return failure(ask, fault)
}
