import type { IncomingHttpHeaders } from 'node:http'
import { request as send } from 'node:https'
import { BlockList } from 'node:net'
import { apisOf } from '../src/api/apis.js'
import { openCaches } from '../src/cache/caches.js'
import { openWritePositions } from '../src/cache/write-positions.js'
import { noteWrites } from '../src/clients/note-writes.js'
import { readAudit } from '../src/clients/read-audit.js'
import type { MountedApi } from '../src/http/exchange.js'
import { apiOf, isClosed, pathOf } from '../src/http/paths.js'
import { mount } from '../src/http/pipeline.js'
import type { AccessRecord } from '../src/http/request-log.js'
import { type Listening, listen, type ServerLimits } from '../src/http/server.js'
import { openShares, type ShareLimits } from '../src/http/shares.js'
import { SERVER_NAME } from '../src/http/version.js'
import { oidcApi } from '../src/oidc/oidc.js'
import { localUris, redirectUris } from '../src/oidc/redirect-uris.js'
import type { DescribeReplicas } from '../src/status/sources.js'
import { statusApi } from '../src/status/status-api.js'
import { openChangeSource, openEventSource } from '../src/streams/sources.js'
import { openStreams } from '../src/streams/streams.js'
import { openWeb, type WebOptions } from '../src/web/web.js'
import { makeCertificate } from './certificates.js'
import { type Fakes, fakes } from './fakes.js'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly text: string
  readonly json: { readonly data?: unknown; readonly meta?: unknown; readonly error?: ErrorJson }
}

export interface ErrorJson {
  readonly code: string
  readonly requestId: string
  readonly cause?: Readonly<Record<string, unknown>>
}

export interface RequestOptions {
  readonly method?: string
  readonly token?: string
  readonly headers?: Record<string, string>
  readonly body?: unknown
  readonly text?: string
  readonly tls?: { readonly key: string; readonly cert: string }
}

export interface TestGateway extends AsyncDisposable {
  readonly fakes: Fakes
  readonly port: number
  readonly apis: readonly MountedApi[]
  readonly accessRecords: AccessRecord[]
  /** Lines of the log. */
  readonly logged: readonly object[]
  renew: Listening['renew']
  hurry: Listening['hurry']
  request(path: string, options?: RequestOptions): Promise<Answer>
}

export interface GatewayOptions
  extends Partial<ServerLimits>,
    Partial<ShareLimits>,
    Partial<Pick<WebOptions, 'health' | 'console'>> {
  readonly bodyMs?: number
  readonly describeReplicas?: DescribeReplicas
  readonly announcesOidc?: boolean
}

const defaultLimits = {
  headersMs: 2000,
  idleMs: 5000,
  headerBytes: 16 << 10,
  changeMs: 300,
  drainMs: 2000,
  connections: 1000,
  connectionsPerSource: 1000,
  proxies: new BlockList(),
}
const server = makeCertificate('localhost')

/** A whole gateway on a free port; the services behind it are fakes. */
export async function startGateway(options: GatewayOptions = {}): Promise<TestGateway> {
  const { console, health = () => ({ ready: true, checks: {} }), describeReplicas, ...limits } = options
  const { announcesOidc = true } = options
  const { requestMs = 10_000, bodyMs = 5000, requestsPerSource = 0, requestsPerSession = 0 } = limits
  const fake = fakes()
  const writePositions = openWritePositions()
  const services = noteWrites(fake.services, writePositions.note)
  const address = 'localhost:1280'
  const caches = openCaches(services, writePositions, { warn: () => undefined }, address)
  const accessRecords: AccessRecord[] = []
  let isClosing = false
  const program = { revision: 'r', buildDate: '2026-01-01 00:00:00', runtimeVersion: 'r' }
  const logged: object[] = []
  const log = { info: (facts: object, message: string) => void logged.push({ ...facts, message }) }
  const apis = apisOf({
    services,
    caches,
    address,
    program,
    announcesOidc,
    log,
  })
  const [redirects, logoutRedirects] = [
    redirectUris(localUris('callback')),
    redirectUris(localUris('logout')),
  ]
  const oidc = oidcApi({ services, caches, address, redirects, logoutRedirects, log })
  const status = statusApi({
    services,
    sessions: caches.sessions,
    describeReplicas: describeReplicas ?? (async () => []),
    address,
  })
  const app = mount(
    {
      sessions: caches.sessions,
      serverName: SERVER_NAME,
      paths: { pathOf, apiOf, isClosed },
      positions: writePositions.positions,
      instanceId: 'cinstance',
      shares: openShares({ requestsPerSource, requestsPerSession }),
      requestMs,
      body: { maxBytes: 1 << 20, withinMs: bodyMs },
      openBody: { maxBytes: 80 << 10, withinMs: bodyMs },
      onAnswer: (record) => accessRecords.push(record),
      isClosing: () => isClosing,
    },
    [...apis, oidc, status],
    await openWeb({ address, apis, health, console }),
  )
  const { keyPem, pem } = await server
  const listening = await listen(
    { host: '127.0.0.1', port: 0 },
    { keyPem, chainPem: pem },
    { ...defaultLimits, requestMs, ...limits },
    app,
  )
  const { port } = listening
  const silent = { info: () => undefined, warn: () => undefined }
  const events = openEventSource(services.sessions, silent)
  const changes = openChangeSource((query, context) => readAudit(services, query, context), silent)
  const streams = openStreams({
    events,
    changes,
    countEntities: async () => ({ services: 1 }),
    validate: (request, context) => services.sessions.validate(request, context),
    path: '/fabric/v1/ws-api',
    pathOf,
    sessions: caches.sessions,
    log: silent,
    maxStreamsPerSource: 3,
  })
  caches.onDrop(streams.recheck)
  listening.onUpgrade(streams.upgrade)
  return {
    fakes: fake,
    port,
    apis,
    accessRecords,
    logged,
    renew: listening.renew,
    hurry: listening.hurry,
    request: (path, options) => requestAt(port, path, options),
    async [Symbol.asyncDispose]() {
      isClosing = true
      await streams[Symbol.asyncDispose]()
      await listening[Symbol.asyncDispose]()
      await events[Symbol.asyncDispose]()
      await changes[Symbol.asyncDispose]()
      await caches[Symbol.asyncDispose]()
    },
  }
}

function requestAt(port: number, path: string, options: RequestOptions = {}): Promise<Answer> {
  const { method = 'GET', token, headers = {}, body, text, tls } = options
  const content = text ?? (body === undefined ? undefined : JSON.stringify(body))
  const all = {
    ...(token && { 'zt-session': token }),
    ...(content !== undefined && {
      'content-type': 'application/json',
      ...(method === 'DELETE' && { 'content-length': String(Buffer.byteLength(content)) }), // node omits it there
    }),
    ...headers,
  }
  return new Promise((resolve, reject) => {
    const request = send(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        headers: all,
        rejectUnauthorized: false,
        agent: false,
        ...tls,
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const bytes = Buffer.concat(chunks)
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: bytes,
            text: bytes.toString(),
            get json() {
              return JSON.parse(bytes.toString()) as Answer['json']
            },
          })
        })
      },
    )
    request.on('error', reject)
    request.end(content)
  })
}
