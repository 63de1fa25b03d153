import { asFault, Fault, type Positions } from '@overlay/rpc'
import { Hono } from 'hono'
import type { AccessRecord } from './access-log.js'
import { failure } from './answer.js'
import { type BodyLimits, readBody } from './body.js'
import { abortCalls, openCalls } from './calls.js'
import { allowOrigin, preflight } from './cors.js'
import { credentialsOf } from './credentials.js'
import type { Access, Answer, Endpoint, MountedApi } from './endpoint.js'
import { requestId } from './ids.js'
import { checkAccept, checkContentType, refusalTypeOf } from './negotiate.js'
import { noPages, type Page, type Pages } from './pages.js'
import { checkQuery } from './query.js'
import type { Env, Params, RequestContext } from './request-context.js'
import { type MountedOperation, type Route, routesOf } from './routes.js'
import { type Session, type SessionStore, setExpiry } from './session.js'

export interface Pipeline {
  readonly sessions: SessionStore
  /** Value of the header `server`. */
  readonly serverName: string
  readonly paths: {
    /** The path by which an operation is found. */
    readonly pathOf: (target: string) => string
    /** The API that a path belongs to. */
    readonly apiOf: (path: string) => string
    /** True for paths that ask for a session before anything else. */
    readonly isClosed: (path: string) => boolean
  }
  /** The positions that answers must not be older than. */
  readonly positions: () => Positions
  readonly instanceId: string
  readonly requestMs: number
  readonly body: BodyLimits
  /** For operations that need no session. */
  readonly openBody: BodyLimits
  onAnswer(record: AccessRecord): void
  /** True when the process is about to end: answers then close their connections. */
  isClosing(): boolean
}

/**
 * Puts the operations of the tables, and pages, behind one fetch function. An operation without a handler stops the
 * start.
 */
export function mount(pipeline: Pipeline, apis: readonly MountedApi[], web: Pages = noPages): Hono<Env> {
  const { pathOf, apiOf, isClosed } = pipeline.paths
  const protocols = new Map(apis.map(({ api, protocol }) => [api, protocol]))
  const app = new Hono<Env>({
    getPath: (request, options) => {
      const incoming = options?.env?.incoming
      if (!incoming) return pathOf(request.url)
      return web.pathOf(incoming) ?? pathOf(incoming.url ?? '')
    },
  })
  app.options('*', (c) => {
    setCommonHeaders(pipeline, c)
    return new Response(null, { status: preflight(c.env.incoming, c.env.outgoing) })
  })
  for (const api of apis)
    for (const [path, route] of routesOf(api))
      app.all(path.replace(/\{(\w+)\}/g, ':$1'), (c) => serve(pipeline, route, c))
  for (const page of web.pages) app.all(page.pattern, (c) => servePage(pipeline, page, c))
  app.notFound((c) => {
    const api = apiOf(c.req.path)
    openRequest(pipeline, api, '', c)
    c.set('protocol', protocols.get(api))
    if (isClosed(c.req.path)) return withSession(pipeline, c, () => failure(c, unknownPath(c)))
    setCachedExpiry(pipeline, c)
    return failure(c, unknownPath(c))
  })
  app.onError(answerError)
  return app
}

/**
 * The order of checks is wire contract: path, method, session, content type, accept, form of query and body, permission,
 * limits of the body, the operation. differs: in closed APIs, the session comes first.
 */
function serve(pipeline: Pipeline, route: Route, c: RequestContext): Answer {
  const { incoming } = c.env
  const { method = '' } = incoming
  const mounted = route.methods[method]
  openRequest(pipeline, route.api, mounted?.operation ?? '', c)
  c.set('protocol', route.protocol)
  if (mounted?.endpoint.produces) c.set('refusalType', refusalTypeOf(incoming, mounted.endpoint.produces))
  const find = (): MountedOperation => {
    // no stored id can hold one
    if (route.hasParams && c.req.path.includes('%00')) throw unknownPath(c)
    if (mounted) return mounted
    throw new Fault('METHOD_NOT_ALLOWED', `method ${method} is not allowed, but [${route.allowed}] are`)
  }
  const params = route.hasParams ? (c.req.param() as Params) : noParams
  if (pipeline.paths.isClosed(c.req.path))
    return withSession(pipeline, c, () => handle(pipeline, find(), params, c))
  if (!mounted || mounted.access === 'none') setCachedExpiry(pipeline, c)
  const operation = find()
  if (operation.access === 'none') return withTimeout(pipeline, c, handle(pipeline, operation, params, c))
  return withSession(pipeline, c, () => handle(pipeline, operation, params, c))
}

function withSession(pipeline: Pipeline, c: RequestContext, answer: () => Answer): Answer {
  const enter = (session: Session): Answer => {
    c.set('session', session)
    setExpiry(c, session)
    return answer()
  }
  const session = pipeline.sessions.find(credentialsOf(c.env.incoming))
  return withTimeout(pipeline, c, session instanceof Promise ? session.then(enter) : enter(session))
}

function servePage(pipeline: Pipeline, { operation, handle }: Page, c: RequestContext): Answer {
  const { incoming, outgoing } = c.env
  openRequest(pipeline, 'web', operation, c)
  const { method } = incoming
  if (method !== 'GET' && method !== 'HEAD') {
    outgoing.setHeader('allow', 'GET, HEAD')
    throw new Fault('METHOD_NOT_ALLOWED', `method ${method} is not allowed, but [GET,HEAD] are`)
  }
  return withTimeout(pipeline, c, handle(c))
}

const noParams: Params = { id: '', serviceId: '' }

const unknownPath = ({ req: { path } }: RequestContext): Fault =>
  new Fault('NOT_FOUND', `path ${path} was not found`)

function openRequest(pipeline: Pipeline, api: string, operation: string, c: RequestContext): void {
  const startedMs = performance.now()
  const { incoming, outgoing } = c.env
  const calls = openCalls(pipeline.positions, pipeline.requestMs)
  c.set('requestId', requestId())
  c.set('calls', calls)
  setCommonHeaders(pipeline, c)
  outgoing.once('close', () => {
    const aborted = !outgoing.writableFinished
    if (aborted) abortCalls(calls, new Error('the client went away'))
    const seconds = (performance.now() - startedMs) / 1000
    pipeline.onAnswer({ c, api, operation, status: outgoing.statusCode, seconds, aborted })
  })
  allowOrigin(incoming, outgoing)
}

function setCommonHeaders(
  { serverName, instanceId, isClosing }: Pipeline,
  { env: { outgoing } }: RequestContext,
): void {
  outgoing.setHeader('server', serverName)
  outgoing.setHeader('ziti-instance-id', instanceId)
  if (isClosing()) outgoing.setHeader('connection', 'close')
}

/** Without a call to the owner of sessions: the operation needs none. */
function setCachedExpiry({ sessions }: Pipeline, c: RequestContext): void {
  const session = sessions.cached(credentialsOf(c.env.incoming))
  if (session) setExpiry(c, session)
}

/** Checks the input and the permission, then runs the handler. */
function handle(
  pipeline: Pipeline,
  { endpoint, access }: MountedOperation,
  params: Params,
  c: RequestContext,
): Answer {
  const { body } = endpoint
  checkForm(c, endpoint)
  if (!body) {
    checkPermission(access, c.get('session'))
    return endpoint.handle(c, params, undefined as never)
  }
  return readBody(c, body, access === 'none' ? pipeline.openBody : pipeline.body).then((finish) => {
    checkPermission(access, c.get('session'))
    return endpoint.handle(c, params, finish() as never)
  })
}

function checkForm(c: RequestContext, endpoint: Endpoint): void {
  const protocol = c.get('protocol')
  if (protocol) {
    protocol.check(c, endpoint)
    return
  }
  const { body, query = [], produces } = endpoint
  checkContentType(c.env.incoming, body?.consumes)
  if (!produces) checkAccept(c.env.incoming)
  checkQuery(c, query)
}

/** wire: there is no 403. A missing permission is answered like a missing session. */
function checkPermission(access: Access, session: Session | undefined): void {
  if (access === 'none') return
  if (!session) throw new Fault('UNAUTHORIZED')
  if (access === 'partial') return
  // differs: admins too need their second factor
  if (session.isPartial || (access === 'admin' && !session.isAdmin)) throw new Fault('UNAUTHORIZED')
}

/** Waits for the answer no longer than a request may take. */
function withTimeout({ requestMs }: Pipeline, c: RequestContext, answer: Answer): Answer {
  if (!(answer instanceof Promise)) return answer
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const timeout = new Fault('TIMEOUT')
      abortCalls(c.get('calls'), timeout)
      if (!c.env.outgoing.headersSent) reject(timeout)
    }, requestMs)
    answer.then(
      (response) => {
        clearTimeout(timer)
        resolve(response)
      },
      (err: unknown) => {
        clearTimeout(timer)
        reject(err)
      },
    )
  })
}

/** The only place that turns an error into an answer. */
function answerError(err: Error, c: RequestContext): Response {
  if (!(err instanceof Fault)) c.error = err
  return failure(c, asFault(err))
}
