import { type Admission, refusalOf } from './admit.js'
import { bytesOf } from './bytes.js'
import { contextFromMessage } from './context.js'
import { type OwnEnding, openEnding } from './ending.js'
import { asFault, Fault, faultToMessage, refusalMessage } from './fault.js'
import { Answer, Call, CallContext } from './gen/overlay/stream/v1/stream.js'
import type { ServiceHost } from './host.js'
import { CALL_LIMIT_MS, onAbort } from './limits.js'
import { PING } from './mux-client.js'
import type { PeerName } from './peer-name.js'
import { MalformedMessage, type Wire, type WireEvents } from './wire.js'

const EMPTY = Buffer.alloc(0)

/** Of one wire. Further calls are not read before others are answered. */
const MAX_RUNNING = 1000

/** Serves the calls that arrive over the wire that `open` opens. */
export type ServeWire = (caller: PeerName, open: (events: WireEvents) => Wire) => void

/**
 * Serves many calls over one wire, each with its tag. When the wire is old or the server stops, tag 0 asks the client to
 * continue with another wire. The client then ends its half, and the server ends the other half after the last answer.
 */
export const muxServer =
  (
    { multiplexed: methods, stopping, log }: Pick<ServiceHost, 'multiplexed' | 'stopping' | 'log'>,
    { host, callersOf, refused }: Admission,
    ageMs: number,
  ): ServeWire =>
  (caller, open) => {
    const running = new Map<number, OwnEnding>()
    let hasClientEnded = false
    let isPaused = false

    const wire = open({
      message(bytes) {
        const call = Call.decode(bytes)
        const { tag, method } = call
        if (method === PING) reply(tag, {})
        else if (method === '') running.get(tag)?.end(new Fault('TIMEOUT'))
        else if (methods.has(method) && !callersOf(host, method)?.has(caller)) refuse(call)
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
        for (const ending of running.values()) ending.end(new Fault('TIMEOUT'))
        if (err instanceof MalformedMessage) log.warn({ err, peer: caller }, 'connection ended')
      },
    })
    const drain = (): void => reply(0, {})
    const removeListener = onAbort(stopping, drain)
    const ageTimer = setTimeout(drain, ageMs).unref()

    function reply(tag: number, answer: Partial<Answer>): void {
      wire.send(...encodeAnswer({ tag, ...answer }))
    }
    function endIfIdle(): void {
      if (hasClientEnded && running.size === 0) wire.end()
    }
    /** The answers of a client that does not read them must not fill the memory. */
    function regulate(): void {
      const isBusy = running.size >= MAX_RUNNING || wire.isCongested()
      if (isBusy === isPaused) return
      isPaused = isBusy
      if (isBusy) wire.pause()
      else wire.resume()
    }

    function refuse({ tag, method }: Call): void {
      refused({ reason: 'caller', method, caller })
      reply(tag, { fault: refusalMessage(refusalOf(caller, method)) })
    }

    async function answer({ tag, method, request, context, timeoutMs }: Call): Promise<void> {
      const limitMs = Math.min(timeoutMs || CALL_LIMIT_MS, CALL_LIMIT_MS)
      const ending = openEnding(limitMs)
      running.set(tag, ending)
      try {
        const call = methods.get(method)
        if (!call) throw new Fault('UNHANDLED', undefined, new Error(`no method '${method}' on this stream`))
        const callContext = contextFromMessage(context ?? CallContext.create(), limitMs, ending)
        reply(tag, { response: await call(request, callContext) })
      } catch (err) {
        reply(tag, { fault: faultToMessage(asFault(err)) })
      } finally {
        ending.forget()
        running.delete(tag)
        endIfIdle()
        regulate()
      }
    }
  }

const RESPONSE = 18

/** As `Answer.encode`, but in parts: the response is not copied. */
function encodeAnswer({ tag = 0, response = EMPTY, fault }: Partial<Answer>): Buffer[] {
  const writer = Answer.encode({ tag, response: EMPTY, fault })
  if (response.length === 0) return [bytesOf(writer)]
  return [bytesOf(writer.uint32(RESPONSE).uint32(response.length)), response]
}
