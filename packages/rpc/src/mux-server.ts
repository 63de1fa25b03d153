import type { handleBidiStreamingCall } from '@grpc/grpc-js'
import { bytesOf } from './bytes.js'
import { contextFromMessage } from './context.js'
import { asFault, Fault, faultToMessage } from './fault.js'
import { Answer, type Call, CallContext } from './gen/overlay/stream/v1/stream.js'
import type { Answering } from './host.js'
import { after, CALL_LIMIT_MS, whenAborted } from './limits.js'
import { PING } from './mux-client.js'

const NOTHING = Buffer.alloc(0)

/**
 * Many calls over one stream, told apart by their tags. It asks its caller to go on with another stream when it
 * is old or the server stops; the caller ends its half then, and this one ends when all is answered.
 */
export const muxServer =
  (
    methods: ReadonlyMap<string, Answering>,
    stopping: AbortSignal,
    ageMs: number,
  ): handleBidiStreamingCall<Call, Buffer> =>
  (stream) => {
    const running = new Map<number, AbortController>()
    let ended = false
    const endIfIdle = (): void => {
      if (ended && running.size === 0) stream.end()
    }
    const reply = (tag: number, answer: Partial<Answer>): void => {
      stream.write(bytesOf(Answer.encode({ tag, response: NOTHING, fault: undefined, ...answer })))
    }
    const drain = (): void => reply(0, {})
    const notStopped = whenAborted(stopping, drain)
    const old = setTimeout(drain, ageMs)
    old.unref()

    async function answer({ tag, method, request, context, timeoutMs }: Call): Promise<void> {
      const abort = new AbortController()
      const left = Math.min(timeoutMs || CALL_LIMIT_MS, CALL_LIMIT_MS)
      const inTime = after(left, () => abort.abort(new Fault('TIMEOUT')))
      running.set(tag, abort)
      try {
        const run = methods.get(method)
        if (!run) throw new Fault('UNHANDLED', undefined, new Error(`no method '${method}' on this stream`))
        const deadline = new Date(Date.now() + left)
        const known = contextFromMessage(context ?? CallContext.create(), deadline, abort.signal)
        reply(tag, { response: await run(request, known) })
      } catch (err) {
        reply(tag, { fault: faultToMessage(asFault(err)) })
      } finally {
        inTime()
        running.delete(tag)
        endIfIdle()
      }
    }

    stream.on('data', (call: Call) => {
      if (call.method === PING) reply(call.tag, {})
      else if (call.method === '') running.get(call.tag)?.abort(new Fault('TIMEOUT'))
      else void answer(call)
    })
    stream.on('end', () => {
      ended = true
      endIfIdle()
    })
    stream.on('cancelled', () => {
      for (const abort of running.values()) abort.abort(new Fault('TIMEOUT'))
    })
    stream.on('error', () => undefined) // 'cancelled' follows
    stream.on('close', () => {
      clearTimeout(old)
      notStopped()
    })
  }
