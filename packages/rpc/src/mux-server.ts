import { asBuffer } from './as-buffer.js'
import { type Cancellation, openCancellation } from './cancellation.js'
import { type Admission, checkCaller } from './check-caller.js'
import { contextFromMessage } from './context-codec.js'
import { asFault, Fault, faultToMessage, refusalMessage } from './fault.js'
import { type FrameConnection, type FrameEvents, MalformedMessage } from './frame-connection.js'
import { Answer, Call, CallContext } from './gen/overlay/stream/v1/stream.js'
import type { ServiceHost } from './host.js'
import { CALL_LIMIT_MS, MAX_RUNNING_CALLS } from './limits.js'
import { PING } from './mux-client.js'
import { onAbort } from './on-abort.js'
import type { PeerName } from './peer-name.js'

const EMPTY = Buffer.alloc(0)

/** Serves the calls that arrive over the connection that `open` opens. */
export type ServeConnection = (caller: PeerName, open: (events: FrameEvents) => FrameConnection) => void

/**
 * Serves many calls over one connection, each with its tag. When the connection is old or the server stops, tag 0 asks
 * the client to continue with another one. The client then ends its half, and the server ends the other half after the
 * last answer.
 */
export const openMuxServer =
  (
    { methods, stopping, log }: Pick<ServiceHost, 'methods' | 'stopping' | 'log'>,
    admission: Admission,
    ageMs: number,
  ): ServeConnection =>
  (caller, open) => {
    const running = new Map<number, Cancellation>()
    let hasClientEnded = false
    let isPaused = false

    const connection = open({
      message(bytes) {
        const call = Call.decode(bytes)
        const { tag, method } = call
        if (method === PING) reply(tag, {})
        else if (method === '') running.get(tag)?.cancel(new Fault('TIMEOUT'))
        else if (running.has(tag)) throw new Error(`tag ${tag} of a running call`)
        else void answer(call)
        regulate()
      },
      ended() {
        hasClientEnded = true
        endIfIdle()
      },
      drained: regulate,
      closed(err) {
        clearTimeout(ageTimer)
        removeListener()
        for (const cancellation of running.values()) cancellation.cancel(new Fault('TIMEOUT'))
        if (err instanceof MalformedMessage) log.warn({ err, peer: caller }, 'connection ended')
      },
    })
    const drain = (): void => reply(0, {})
    const removeListener = onAbort(stopping, drain)
    const ageTimer = setTimeout(drain, ageMs).unref()

    function reply(tag: number, { response = EMPTY, fault }: Partial<Answer>): void {
      connection.send(asBuffer(Answer.encode({ tag, response, fault }).finish()))
    }
    function endIfIdle(): void {
      if (hasClientEnded && running.size === 0) connection.end()
    }
    /** The answers of a client that does not read them must not fill the memory. */
    function regulate(): void {
      const isBusy = running.size >= MAX_RUNNING_CALLS || connection.isCongested()
      if (isBusy === isPaused) return
      isPaused = isBusy
      if (isBusy) connection.pause()
      else connection.resume()
    }

    async function answer({ tag, method, request, context, timeoutMs }: Call): Promise<void> {
      const hosted = methods.get(method)
      const refusal = hosted && checkCaller(admission, caller, method)
      if (refusal !== undefined) return reply(tag, { fault: refusalMessage(refusal) })
      const limitMs = Math.min(timeoutMs || CALL_LIMIT_MS, CALL_LIMIT_MS)
      const cancellation = openCancellation(limitMs)
      running.set(tag, cancellation)
      try {
        // this replica is of a former release
        if (!hosted) throw new Fault('UNAVAILABLE', undefined, new Error(`no method '${method}'`))
        const callContext = contextFromMessage(context ?? CallContext.create(), limitMs, cancellation.signal)
        reply(tag, { response: await hosted.callEncoded(request, callContext) })
      } catch (err) {
        reply(tag, { fault: faultToMessage(asFault(err)) })
      } finally {
        cancellation.forget()
        running.delete(tag)
        endIfIdle()
        regulate()
      }
    }
  }
