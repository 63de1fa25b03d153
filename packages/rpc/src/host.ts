import { once } from 'node:events'
import type {
  handleServerStreamingCall,
  handleUnaryCall,
  MethodDefinition,
  Server,
  ServiceDefinition,
  UntypedServiceImplementation,
} from '@grpc/grpc-js'
import type { Logger } from 'pino'
import { openCancellation } from './cancellation.js'
import { type Context, traceIdOf } from './context.js'
import { fromMetadata } from './context-codec.js'
import { Fault, faults, toStatus } from './fault.js'
import { CALL_LIMIT_MS, RESPONSE_LIMIT_BYTES } from './limits.js'
import type { Methods } from './methods.js'
import { onAbort } from './on-abort.js'
import { callFacts, tracing } from './tracing.js'

/** Called after every call. `code` is OK or that of the fault. Streams, which last as long as their clients, have no `requestId`. */
export type Observe = (method: string, code: string, seconds: number, requestId?: string) => void

/** A call that is answered 503, and why. */
export interface UnavailableCall {
  readonly method: string
  readonly code: string
  readonly requestId: string
  readonly traceId: string | undefined
  readonly err: unknown
}

/** A method with one answer, which is encoded: services may keep parts of it. Throws only faults. */
export interface HostedMethod {
  /** For callers in this process, whose requests are not encoded. */
  call(request: unknown, context: Context): Promise<Buffer>
  callEncoded(request: Buffer, context: Context): Promise<Buffer>
}

/**
 * A stream over encoded messages. Waits for what `write` returns before the next message. Rejects
 * with faults only, also when the call ends.
 */
export type RawStream = (request: Buffer, context: Context, write: Write) => Promise<void>
type Write = (message: Buffer) => Promise<unknown> | undefined

/** What `serve` offers to the services that it hosts. */
export interface ServiceHost {
  readonly server: Server
  readonly log: Logger
  readonly observe: Observe
  /** Called once for each fault of status 503 that has a cause. */
  readonly unavailable: (call: UnavailableCall) => void
  readonly stopping: AbortSignal
  /** By path. */
  readonly methods: Map<string, HostedMethod>
  /** By path. */
  readonly streams: Map<string, RawStream>
  /** The full names of the services so far. */
  readonly names: Set<string>
}

/** A host without services. */
export const openServiceHost = (
  host: Pick<ServiceHost, 'server' | 'log' | 'stopping'> &
    Partial<Pick<ServiceHost, 'observe' | 'unavailable'>>,
): ServiceHost => ({
  observe: () => undefined,
  unavailable: () => undefined,
  methods: new Map(),
  streams: new Map(),
  names: new Set(),
  ...host,
})

/** Adds a service to a server. */
export type HostedService = (host: ServiceHost) => void

type UnaryMethod = (request: unknown, context: Context) => Promise<unknown>
type StreamMethod = (request: unknown, context: Context) => AsyncIterable<unknown>
type AnyMethod = MethodDefinition<unknown, unknown>

/** Serves plain functions over gRPC. An error that is not a Fault is logged here, once. */
export function host<D extends ServiceDefinition>(definition: D, methods: Methods<D>): HostedService {
  return (serviceHost) => {
    const handlers: UntypedServiceImplementation = {}
    const raw: Record<string, AnyMethod> = {}
    for (const [name, method] of Object.entries<AnyMethod>(definition)) {
      const { path } = method
      serviceHost.names.add(serviceIn(path))
      const implementation: unknown = methods[name as keyof D]
      if (!implementation) throw new Error(`${path} is not implemented`)
      raw[name] = {
        ...method,
        requestDeserialize: (bytes) => bytes,
        responseSerialize: (bytes) => bytes as Buffer,
      }
      if (method.responseStream) {
        const stream = rawStream(method, implementation as StreamMethod, serviceHost)
        serviceHost.streams.set(path, stream)
        handlers[name] = streaming(stream, serviceHost.stopping)
      } else {
        const hosted = hostedMethod(method, implementation as UnaryMethod, serviceHost)
        serviceHost.methods.set(path, hosted)
        handlers[name] = unary(hosted)
      }
    }
    serviceHost.server.addService(raw, handlers)
  }
}

const serviceIn = (path: string): string => path.split('/')[1] ?? ''

function hostedMethod(
  { path, requestDeserialize, responseSerialize }: AnyMethod,
  run: UnaryMethod,
  serviceHost: ServiceHost,
): HostedMethod {
  const { observe } = serviceHost
  /** Decodes and encodes inside its try: a malformed message fails its own call only. */
  async function answer(request: () => unknown, context: Context): Promise<Buffer> {
    const start = performance.now()
    let code = 'OK'
    try {
      const response = responseSerialize(await run(request(), context))
      if (response.length > RESPONSE_LIMIT_BYTES) throw new Error(`response of ${response.length} bytes`)
      return response
    } catch (err) {
      const fault = faultOf(err, path, context, serviceHost)
      code = fault.code
      throw fault
    } finally {
      observe(path, code, (performance.now() - start) / 1000, context.requestId)
    }
  }
  const traced = tracing
  const facts = callFacts('server', path)
  const call = (request: () => unknown, context: Context): Promise<Buffer> =>
    traced
      ? traced.below(context.traceparent, facts, () => answer(request, context))
      : answer(request, context)
  return {
    call: (request, context) => call(() => request, context),
    callEncoded: (request, context) => call(() => requestDeserialize(request), context),
  }
}

const unary =
  ({ callEncoded }: HostedMethod): handleUnaryCall<Buffer, Buffer> =>
  (call, done) => {
    const limitMs = Math.min(Number(call.getDeadline()) - Date.now(), CALL_LIMIT_MS)
    const cancellation = openCancellation(limitMs)
    const cancel = (): void => cancellation.cancel(new Fault('TIMEOUT'))
    call.on('cancelled', cancel)
    callEncoded(call.request, fromMetadata(call.metadata, limitMs, cancellation.signal))
      .then(
        (response) => done(null, response),
        (err: unknown) => done(toStatus(err)),
      )
      .finally(() => {
        cancellation.forget()
        call.off('cancelled', cancel) // emitted after an answered call too
      })
  }

function rawStream(
  { path, requestDeserialize, responseSerialize }: AnyMethod,
  run: StreamMethod,
  serviceHost: ServiceHost,
): RawStream {
  const { observe } = serviceHost
  return async (request, context, write) => {
    const { signal } = context
    const start = performance.now()
    let code = 'OK'
    let removeListener: () => void = () => undefined
    async function send(): Promise<void> {
      for await (const message of run(requestDeserialize(request), context)) {
        if (signal.aborted) return
        const written = write(responseSerialize(message))
        if (written) await written
      }
    }
    const ended = new Promise<never>((_, reject) => {
      removeListener = onAbort(signal, () => reject(signal.reason))
    })
    try {
      await Promise.race([send(), ended])
    } catch (err) {
      const fault = faultOf(err, path, context, serviceHost)
      code = fault.code
      throw fault
    } finally {
      removeListener()
      observe(path, code, (performance.now() - start) / 1000)
    }
  }
}

const streaming =
  (stream: RawStream, stopping: AbortSignal): handleServerStreamingCall<Buffer, Buffer> =>
  (call) => {
    const limitMs = Number(call.getDeadline()) - Date.now()
    const cancellation = openCancellation(limitMs)
    call.on('cancelled', () => cancellation.cancel(new Fault('TIMEOUT')))
    const removeListener = onAbort(stopping, () => cancellation.cancel(new Fault('UNAVAILABLE')))
    const context = fromMetadata(call.metadata, limitMs, cancellation.signal)
    stream(call.request, context, (message) =>
      call.write(message) ? undefined : once(call, 'drain', { signal: context.signal }),
    )
      .then(
        () => call.end(),
        (err: unknown) => call.emit('error', toStatus(err)), // destroy() would never reach the client
      )
      .finally(() => {
        removeListener()
        cancellation.forget()
      })
  }

function faultOf(
  err: unknown,
  method: string,
  context: Context,
  { log, unavailable }: Pick<ServiceHost, 'log' | 'unavailable'>,
): Fault {
  const { requestId } = context
  if (err instanceof Fault) {
    const { code, cause } = err
    // a service of the same process gets the fault itself, and throws it again
    if (faults[code][0] !== 503 || cause === undefined || reported.has(err)) return err
    reported.add(err)
    unavailable({ method, code, requestId, traceId: traceIdOf(context), err: cause })
    return err
  }
  if (context.signal.aborted && (err as Error).name === 'AbortError')
    return new Fault('TIMEOUT', undefined, err)
  log.error({ err, method, requestId, traceId: traceIdOf(context) }, 'call failed')
  return new Fault('UNHANDLED', undefined, err)
}

const reported = new WeakSet<Fault>()
