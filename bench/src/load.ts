import { Agent, request as httpsRequest } from 'node:https'
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import { createSecureContext } from 'node:tls'
import autocannon from 'autocannon'
import type { Certificate } from './seed.js'

export interface Request {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** The requests of a scenario. */
export type Load =
  /** These requests in turn, repeatedly. */
  | { readonly requests: readonly Request[] }
  /** A new request each time; `amount` of them, if set, instead of a duration. */
  | { readonly next: () => Request; readonly amount?: number }
  /** Each request over a new connection, with the next of these certificates. */
  | { readonly request: Request; readonly certificates: readonly Certificate[] }
  /** Work of its own, measured as its answers. */
  | { readonly run: (limits: Limits) => Promise<Answers> }

export interface Answers {
  readonly latency: RecordableHistogram // microseconds
  /** Failed responses by status, and broken connections as 0. */
  readonly failures: ReadonlyMap<number, number>
}

export interface Limits {
  readonly url: string
  readonly concurrency: number
  readonly seconds: number
  /** The number of requests, in place of a duration. */
  readonly amount?: number
}

/** Sends each request as soon as the previous one on its connection is answered. */
export function drive(load: Load, limits: Limits): Promise<Answers> {
  if ('run' in load) return load.run(limits)
  return 'certificates' in load ? driveReconnecting(load, limits) : driveKeptAlive(load, limits)
}

type KeptAlive = Extract<Load, { requests: unknown } | { next: unknown }>

async function driveKeptAlive(load: KeptAlive, limits: Limits): Promise<Answers> {
  const { url, concurrency, seconds } = limits
  const amount = limits.amount ?? ('next' in load ? load.amount : undefined)
  const { latency, failures, answered } = counting()
  const options: autocannon.Options = {
    url,
    connections: concurrency,
    timeout: 60,
    sampleInt: 100, // it checks for its end at each sample only
    ...(amount === undefined ? { duration: seconds } : { amount }),
    ...('requests' in load ? inTurn(load.requests) : { requests: [generated(load.next)] }),
  }
  const { errors } = await new Promise<autocannon.Result>((resolve, reject) => {
    const running = autocannon(options, (err, result) => (err ? reject(err) : resolve(result)))
    running.on('response', (_, status, __, ms) => answered(status, ms))
  })
  if (errors > 0) failures.set(0, errors)
  return { latency, failures }
}

/** Each connection starts at another index, so that simultaneous requests differ. */
function inTurn(requests: readonly Request[]): Partial<autocannon.Options> {
  let connections = 0
  return {
    setupClient(client) {
      const from = (connections++ * 37) % requests.length
      const rotated = [...requests.slice(from), ...requests.slice(0, from)]
      client.setRequests(rotated.map(({ headers, ...rest }) => ({ ...rest, headers: { ...headers } })))
    },
  }
}

const generated = (next: () => Request): autocannon.Request => ({
  setupRequest: (request) => Object.assign(request, next()),
})

type Reconnecting = Extract<Load, { certificates: unknown }>

/** Without autocannon, which does not count a response after which it reconnects. */
async function driveReconnecting({ request, certificates }: Reconnecting, limits: Limits): Promise<Answers> {
  const { url, concurrency, seconds } = limits
  const contexts = certificates.map((certificate) => createSecureContext(certificate))
  const { latency, failures, answered } = counting()
  const end = performance.now() + seconds * 1000
  let turn = 0
  const one = (): Promise<number> =>
    new Promise((resolve) => {
      const { method, path, headers = {}, body } = request
      const secureContext = contexts[turn++ % contexts.length]
      const outgoing = httpsRequest(`${url}${path}`, {
        method,
        headers: { ...headers, connection: 'close' },
        agent: new Agent({ maxCachedSessions: 0, rejectUnauthorized: false, secureContext }),
      })
      outgoing.on('response', (response) => {
        response.on('end', () => resolve(response.statusCode ?? 0)).resume()
      })
      outgoing.on('error', () => resolve(0))
      outgoing.end(body)
    })
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      const started = performance.now()
      answered(await one(), performance.now() - started)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return { latency, failures }
}

/** Answers that are counted one by one. */
export function counting() {
  const latency = createHistogram()
  const failures = new Map<number, number>()
  const answered = (status: number, ms: number): void => {
    if (status >= 200 && status < 300) latency.record(Math.max(1, Math.round(ms * 1000)))
    else failures.set(status, (failures.get(status) ?? 0) + 1)
  }
  return { latency, failures, answered }
}
