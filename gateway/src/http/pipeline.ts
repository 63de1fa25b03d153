import type { OutgoingHttpHeaders, RequestListener } from 'node:http'
import { clientSourceOf } from '@overlay/process/tls'
import { asFault, Fault, type Positions, tracing } from '@overlay/rpc'
import { Hono } from 'hono'
import { type BodyLimits, readBody } from './body.js'
import { discardRest } from './connection.js'
import { allowOrigin, preflight } from './cors.js'
import { type MountedOperation, noPages, type Page, type Pages, type Route, routesOf } from './endpoint.js'
import { sendFailure } from './envelope.js'
import type {
  Access,
  Answer,
  CallOptions,
  Endpoint,
  Env,
  Exchange,
  MountedApi,
  Params,
  RequestContext,
} from './exchange.js'
import { requestId } from './ids.js'
import { requestListener } from './listener.js'
import { checkAccept, checkContentType, refusalTypeOf } from './negotiate.js'
import { checkQuery } from './query.js'
import type { AccessRecord } from './request-log.js'
import { credentialsOf, type Session, type SessionStore } from './session.js'
import type { Shares } from './shares.js'
import { traceRequests } from './trace-requests.js'
import { SENT, write } from './write.js'

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
  readonly shares: Shares
  readonly requestMs: number
  readonly body: BodyLimits
  /** For operations that need no session. */
  readonly openBody: BodyLimits
  onAnswer(record: AccessRecord): void
  /** True when the process is about to end: answers then close their connections. */
  isClosing(): boolean
}

/** Puts the operations of the tables, and pages, behind one listener. An operation without a handler stops the start. */
export function mount(options: Pipeline, apis: readonly MountedApi[], web: Pages = noPages): RequestListener {
  const pipeline = openPipeline(options)
  const { pathOf, apiOf, isClosed } = pipeline.paths
  const protocols = new Map(apis.map(({ api, protocol }) => [api, protocol]))
  const app = new Hono<Env>({
    getPath: (_request, options) => {
      const exchange = options?.env as Exchange
      const { incoming } = exchange
      exchange.path = web.pathOf(incoming) ?? pathOf(incoming.url ?? '')
      return exchange.path
    },
  })
  app.options('*', (c) => {
    c.env.head = pipeline.head()
    return write(c, preflight(c.env.incoming, c.env.outgoing), {}, null)
  })
  for (const api of apis)
    for (const [path, route] of routesOf(api))
      app.all(path.replace(/\{(\w+)\}/g, ':$1'), (c) => serve(pipeline, route, c))
  for (const page of web.pages) app.all(page.pattern, (c) => servePage(pipeline, page, c))
  app.notFound((c) => {
    const { path } = c.env
    const api = apiOf(path)
    openRequest(pipeline, api, '', c)
    c.env.protocol = protocols.get(api)
    return inShare(pipeline, c, () => {
      if (isClosed(path)) return withSession(pipeline, c, () => sendFailure(c, unknownPath(c)))
      setCachedExpiry(pipeline, c)
      return sendFailure(c, unknownPath(c))
    })
  })
  app.onError(answerError)
  return requestListener(app, tracing && traceRequests(tracing, apis))
}

/** What all requests share. */
interface OpenPipeline extends Pipeline {
  readonly calls: CallOptions
  /** Headers of every response. */
  head(): OutgoingHttpHeaders
}

function openPipeline(pipeline: Pipeline): OpenPipeline {
  const { sessions, serverName, instanceId, requestMs, positions, isClosing } = pipeline
  return {
    ...pipeline,
    calls: { limitMs: requestMs, positions, readmit: (exchange) => readmit(sessions, exchange) },
    head: () => ({
      server: serverName,
      'ziti-instance-id': instanceId,
      ...(isClosing() && { connection: 'close' }),
    }),
  }
}

/** The response has been sent, or the client has closed the connection. */
function endRequest({ onAnswer }: Pipeline, c: RequestContext): void {
  const { incoming, outgoing, abort, timeout, startedMs } = c.env
  clearTimeout(timeout)
  const aborted = !outgoing.writableFinished
  if (aborted) abort.abort(new Error('the client has closed the connection'))
  if (!incoming.complete) discardRest(incoming)
  onAnswer({ c, status: outgoing.statusCode, seconds: (performance.now() - startedMs) / 1000, aborted })
}

/**
 * The order of checks is wire contract: limits of requests, path, method, session, content type, accept, form of query and body, permission,
 * limits of the body, the operation. differs: in closed APIs, the session comes first.
 */
function serve(pipeline: OpenPipeline, route: Route, c: RequestContext): Answer {
  const { incoming, path } = c.env
  const { method = '' } = incoming
  const mounted = route.methods[method]
  openRequest(pipeline, route.api, mounted?.operation ?? '', c)
  c.env.protocol = route.protocol
  if (mounted) c.env.access = mounted.access
  if (mounted?.endpoint.produces) c.env.refusalType = refusalTypeOf(incoming, mounted.endpoint.produces)
  const find = (): MountedOperation => {
    // no stored id can hold one
    if (route.hasParams && path.includes('%00')) throw unknownPath(c)
    if (mounted) return mounted
    throw new Fault('METHOD_NOT_ALLOWED', `method ${method} is not allowed, but [${route.allowed}] are`)
  }
  const params = route.hasParams ? (c.req.param() as Params) : noParams
  return inShare(pipeline, c, () => {
    if (pipeline.paths.isClosed(path))
      return withSession(pipeline, c, () => handle(pipeline, find(), params, c))
    if (!mounted || mounted.access === 'none') setCachedExpiry(pipeline, c)
    const operation = find()
    if (operation.access === 'none') return inTime(pipeline, c, handle(pipeline, operation, params, c))
    return withSession(pipeline, c, () => handle(pipeline, operation, params, c))
  })
}

/** Answers when the source may have another request. */
function inShare(pipeline: OpenPipeline, c: RequestContext, answer: () => Answer): Answer {
  const held = pipeline.shares.takeSource(clientSourceOf(c.env.incoming.socket))
  return held ? inTime(pipeline, c, afterwards(held, c, answer)) : answer()
}

const afterwards = (held: Promise<void>, c: RequestContext, answer: () => Answer): Promise<Response> =>
  held.then(() => (c.env.outgoing.destroyed ? SENT : answer()))

function withSession(pipeline: OpenPipeline, c: RequestContext, answer: () => Answer): Answer {
  const enter = (session: Session): Answer => {
    c.env.session = session
    c.env.reportedSession = session
    const held = pipeline.shares.takeSession(session.id)
    return held ? afterwards(held, c, answer) : answer()
  }
  const session = pipeline.sessions.find(credentialsOf(c.env.incoming))
  return inTime(pipeline, c, session instanceof Promise ? session.then(enter) : enter(session))
}

function servePage(pipeline: OpenPipeline, { operation, handle }: Page, c: RequestContext): Answer {
  const { incoming, outgoing } = c.env
  openRequest(pipeline, 'web', operation, c)
  const { method } = incoming
  if (method !== 'GET' && method !== 'HEAD') {
    outgoing.setHeader('allow', 'GET, HEAD')
    throw new Fault('METHOD_NOT_ALLOWED', `method ${method} is not allowed, but [GET,HEAD] are`)
  }
  return inShare(pipeline, c, () => inTime(pipeline, c, handle(c)))
}

const noParams: Params = { id: '', serviceId: '' }

const unknownPath = ({ env: { path } }: RequestContext): Fault =>
  new Fault('NOT_FOUND', `path ${path} was not found`)

function openRequest(pipeline: OpenPipeline, api: string, operation: string, c: RequestContext): void {
  const { env } = c
  env.requestId = requestId()
  env.api = api
  env.operation = operation
  env.calls = pipeline.calls
  env.head = pipeline.head()
  env.outgoing.once('close', () => endRequest(pipeline, c))
  allowOrigin(env.incoming, env.outgoing)
}

/** Without a call to the owner of sessions: the operation needs none. */
function setCachedExpiry({ sessions }: Pipeline, { env }: RequestContext): void {
  env.reportedSession = sessions.cached(credentialsOf(env.incoming))
}

/** Checks the input and the permission, then runs the handler. */
function handle(
  pipeline: OpenPipeline,
  { endpoint, access }: MountedOperation,
  params: Params,
  c: RequestContext,
): Answer {
  const { body } = endpoint
  checkForm(c, endpoint)
  if (!body) {
    checkPermission(access, c.env.session)
    return endpoint.handle(c, params, undefined as never)
  }
  return readBody(c, body, access === 'none' ? pipeline.openBody : pipeline.body).then((finish) => {
    checkPermission(access, c.env.session)
    return endpoint.handle(c, params, finish() as never)
  })
}

function checkForm(c: RequestContext, endpoint: Endpoint): void {
  const { protocol } = c.env
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

async function readmit(sessions: SessionStore, exchange: Exchange): Promise<void> {
  const { access, incoming, session: before } = exchange
  if (access === 'none') return
  const session = await sessions.find(credentialsOf(incoming))
  if (session.id !== before?.id) throw new Fault('UNAUTHORIZED') // of several tokens, another one counts by now
  checkPermission(access, session)
  exchange.session = session
}

/** The response must be written before the request times out. A response that is being streamed has its own limits. */
function inTime({ requestMs }: Pipeline, c: RequestContext, answer: Answer): Answer {
  if (answer instanceof Promise) c.env.timeout ??= setTimeout(expire, requestMs, c)
  return answer
}

function expire(c: RequestContext): void {
  if (c.env.outgoing.headersSent) return
  const timeout = new Fault('TIMEOUT')
  c.env.abort.abort(timeout)
  sendFailure(c, timeout)
}

/** The only place that turns an error into an answer. */
function answerError(err: Error, c: RequestContext): Response {
  const { outgoing, abort } = c.env
  if (outgoing.headersSent && abort.signal.aborted) return SENT // of a call that was cancelled
  if (!(err instanceof Fault)) c.env.error = err
  return sendFailure(c, asFault(err))
}
