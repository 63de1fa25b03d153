import type { handleBidiStreamingCall } from '@grpc/grpc-js'
import { type Admission, callerOf, refusalOf } from './admit.js'
import { bytesOf } from './bytes.js'
import { contextFromMessage } from './context.js'
import { asFault, Fault, faultToMessage, refusalMessage } from './fault.js'
import { Answer, type Call, CallContext } from './gen/overlay/stream/v1/stream.js'
import type { ServiceHost } from './host.js'
import { CALL_LIMIT_MS, expireAfter, onAbort } from './limits.js'
import { PING } from './mux-client.js'

const EMPTY = Buffer.alloc(0)

/**
 * Serves many calls over one stream, each with its tag. When the stream is old or the server stops, tag 0 asks the
 * client to continue with another stream. The client then ends its half, and the server ends the other half after the
 * last answer.
 */
export const muxServer =
  (
    { multiplexed: methods, stopping }: Pick<ServiceHost, 'multiplexed' | 'stopping'>,
    { host, callersOf, refused }: Admission,
    ageMs: number,
  ): handleBidiStreamingCall<Call, Buffer> =>
  (stream) => {
    const caller = callerOf(stream)
    const running = new Map<number, AbortController>()
    let hasClientEnded = false
    const endIfIdle = (): void => {
      if (hasClientEnded && running.size === 0) stream.end()
    }
    const reply = (tag: number, answer: Partial<Answer>): void => {
      stream.write(bytesOf(Answer.encode({ tag, response: EMPTY, fault: undefined, ...answer })))
    }
    const drain = (): void => reply(0, {})
    const removeListener = onAbort(stopping, drain)
    const ageTimer = setTimeout(drain, ageMs)
    ageTimer.unref()

    function refuse({ tag, method }: Call): void {
      refused({ reason: 'caller', method, caller })
      reply(tag, { fault: refusalMessage(refusalOf(caller, method)) })
    }

    async function answer({ tag, method, request, context, timeoutMs }: Call): Promise<void> {
      const abort = new AbortController()
      const limitMs = Math.min(timeoutMs || CALL_LIMIT_MS, CALL_LIMIT_MS)
      const cancelDeadline = expireAfter(limitMs, () => abort.abort(new Fault('TIMEOUT')))
      running.set(tag, abort)
      try {
        const call = methods.get(method)
        if (!call) throw new Fault('UNHANDLED', undefined, new Error(`no method '${method}' on this stream`))
        const deadline = new Date(Date.now() + limitMs)
        const callContext = contextFromMessage(context ?? CallContext.create(), deadline, abort.signal)
        reply(tag, { response: await call(request, callContext) })
      } catch (err) {
        reply(tag, { fault: faultToMessage(asFault(err)) })
      } finally {
        cancelDeadline()
        running.delete(tag)
        endIfIdle()
      }
    }

    stream.on('data', (call: Call) => {
      if (call.method === PING) reply(call.tag, {})
      else if (call.method === '') running.get(call.tag)?.abort(new Fault('TIMEOUT'))
      else if (methods.has(call.method) && !callersOf(host, call.method)?.has(caller)) refuse(call)
      else void answer(call)
    })
    stream.on('end', () => {
      hasClientEnded = true
      endIfIdle()
    })
    stream.on('cancelled', () => {
      for (const abort of running.values()) abort.abort(new Fault('TIMEOUT'))
    })
    stream.on('error', () => undefined) // 'cancelled' follows
    stream.on('close', () => {
      clearTimeout(ageTimer)
      removeListener()
    })
  }
