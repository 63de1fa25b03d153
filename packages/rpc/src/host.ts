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
import { type Context, fromMetadata, traceIdOf } from './context.js'
import { Fault, toStatus } from './fault.js'
import { after, CALL_LIMIT_MS, whenAborted } from './limits.js'
import type { Methods } from './methods.js'
import { unaryMethods } from './unary-methods.js'

/** Told of every call that was answered; code is OK or that of the fault. */
export type Observe = (method: string, code: string, seconds: number) => void

/** One request to its answer, both as bytes, whichever way they travel. Throws nothing but faults. */
export type Answering = (request: Buffer, context: Context) => Promise<Buffer>

/** What `serve` offers to the services behind it. */
export interface Hosting {
  readonly server: Server
  readonly log: Logger
  readonly observe: Observe
  readonly stopping: AbortSignal
  /** By path: what the tagged stream serves too. */
  readonly tagged: Map<string, Answering>
}

export type Hosted = (hosting: Hosting) => void

type UnaryMethod = (request: unknown, context: Context) => Promise<unknown>
type StreamMethod = (request: unknown, context: Context) => AsyncIterable<unknown>
type AnyMethod = MethodDefinition<unknown, unknown>

/** Puts plain functions behind gRPC. What a method throws is logged here, once, and leaves as a status. */
export function host<D extends ServiceDefinition>(definition: D, methods: Methods<D>): Hosted {
  return (hosting) => {
    const implementation: UntypedServiceImplementation = {}
    const raw: Record<string, AnyMethod> = {}
    for (const [name, method] of Object.entries<AnyMethod>(definition)) {
      const { path } = method
      const run: unknown = methods[name as keyof D]
      if (!run) throw new Error(`${path} is not implemented`)
      raw[name] = {
        ...method,
        requestDeserialize: (bytes) => bytes,
        responseSerialize: (bytes) => bytes as Buffer,
      }
      if (method.responseStream) {
        implementation[name] = streaming(method, run as StreamMethod, hosting)
      } else {
        const answer = answering(method, run as UnaryMethod, hosting)
        if (!unaryMethods.has(path)) hosting.tagged.set(path, answer)
        implementation[name] = unary(answer)
      }
    }
    hosting.server.addService(raw, implementation)
  }
}

/** Decodes and encodes within its try: a bad message concerns its own call and no other. */
function answering(method: AnyMethod, run: UnaryMethod, { log, observe }: Hosting): Answering {
  const { path, requestDeserialize, responseSerialize } = method
  return async (request, context) => {
    const start = performance.now()
    let code = 'OK'
    try {
      return responseSerialize(await run(requestDeserialize(request), context))
    } catch (err) {
      const fault = faultOf(err, path, context, log)
      code = fault.code
      throw fault
    } finally {
      observe(path, code, (performance.now() - start) / 1000)
    }
  }
}

const unary =
  (answer: Answering): handleUnaryCall<Buffer, Buffer> =>
  (call, done) => {
    const abort = new AbortController()
    const giveUp = (): void => abort.abort(new Fault('TIMEOUT'))
    const left = Math.min(Number(call.getDeadline()) - Date.now(), CALL_LIMIT_MS)
    const inTime = after(left, giveUp)
    call.on('cancelled', giveUp)
    answer(call.request, fromMetadata(call.metadata, new Date(Date.now() + left), abort.signal))
      .then(
        (response) => done(null, response),
        (err: unknown) => done(toStatus(err)),
      )
      .finally(() => {
        inTime()
        call.off('cancelled', giveUp) // comes after an answered call too
      })
  }

const streaming =
  (
    { path, requestDeserialize, responseSerialize }: AnyMethod,
    run: StreamMethod,
    { log, observe, stopping }: Hosting,
  ): handleServerStreamingCall<Buffer, Buffer> =>
  (call) => {
    const abort = new AbortController()
    call.on('cancelled', () => abort.abort(new Fault('TIMEOUT')))
    const stopped = whenAborted(stopping, () => abort.abort(new Fault('UNAVAILABLE')))
    const limit = Number(call.getDeadline())
    const deadline = Number.isFinite(limit) ? new Date(limit) : undefined
    const context = fromMetadata(call.metadata, deadline, abort.signal)
    const start = performance.now()
    const end = (code: string): void => observe(path, code, (performance.now() - start) / 1000)

    async function send(): Promise<void> {
      for await (const message of run(requestDeserialize(call.request), context)) {
        if (abort.signal.aborted) return
        if (!call.write(responseSerialize(message))) await once(call, 'drain', { signal: abort.signal })
      }
    }
    const given = new Promise<never>((_, reject) =>
      whenAborted(abort.signal, () => reject(abort.signal.reason)),
    )
    Promise.race([send(), given])
      .then(
        () => {
          call.end()
          end('OK')
        },
        (err: unknown) => {
          const fault = faultOf(err, path, context, log)
          call.emit('error', toStatus(fault)) // destroy() would never reach the client
          end(fault.code)
        },
      )
      .finally(stopped)
  }

function faultOf(err: unknown, method: string, context: Context, log: Logger): Fault {
  if (err instanceof Fault) return err
  const { signal, requestId } = context
  if (signal.aborted && (err as Error).name === 'AbortError') return new Fault('TIMEOUT', undefined, err)
  log.error({ err, method, requestId, traceId: traceIdOf(context) }, 'call failed')
  return new Fault('UNHANDLED', undefined, err)
}
