import type { Client, ClientDuplexStream, Metadata, ServiceError } from '@grpc/grpc-js'
import { bytesOf } from './bytes.js'
import { type Context, contextToMessage } from './context.js'
import { Fault, faultFromMessage, toFault } from './fault.js'
import { type Answer, Call, CallServiceService } from './gen/overlay/stream/v1/stream.js'
import { after, CALL_LIMIT_MS, whenAborted } from './limits.js'

/** The tagged calls to one replica. */
export interface MuxClient {
  call(method: string, request: Buffer, context: Context): Promise<Buffer>
  pending(): number
  /** Asks for a sign of life. */
  ping(): void
  /** Ends all pending calls; the stream stays. */
  fail(fault: Fault): void
  close(): void
}

interface Pending {
  resolve(response: Buffer): void
  reject(fault: Fault): void
  /** Rejects, and tells the replica that its answer is no longer wanted. */
  giveUp(fault: Fault): void
}

/** One stream and what waits for it. Whatever ends the stream fails all of that. */
interface Stream {
  readonly wire: ClientDuplexStream<Buffer, Answer>
  readonly pending: Map<number, Pending>
}

/** More would wait for longer than their callers do. */
const MOST_PENDING = 1000

/** No method has this name: the replica answers in any case, one of an older release with a fault. */
export const PING = 'ping'

/** Keeps one stream open while there are calls, and opens another when it ends. `heard` is called for each answer. */
export function openMuxClient(
  client: Client,
  metadata: () => Metadata,
  heard: () => void = () => undefined,
): MuxClient {
  const streams = new Set<Stream>() // besides the current one those that are only answered to the end
  let current: Stream | undefined
  let pendingCalls = 0
  let lastTag = 0

  function open(): Stream {
    const { path, responseDeserialize } = CallServiceService.calls
    const wire = client.makeBidiStreamRequest(path, asItIs, responseDeserialize, metadata())
    const stream: Stream = { wire, pending: new Map() }
    streams.add(stream)
    const fail = (fault: Fault): void => {
      streams.delete(stream)
      if (current === stream) current = undefined
      for (const { reject } of [...stream.pending.values()]) reject(fault)
    }
    wire.on('data', ({ tag, response, fault }: Answer) => {
      heard()
      if (tag === 0) {
        if (current === stream) current = undefined
        endIfIdle(stream)
      } else if (fault) stream.pending.get(tag)?.reject(faultFromMessage(fault))
      else stream.pending.get(tag)?.resolve(response)
    })
    wire.on('error', (err: ServiceError) => fail(toFault(err)))
    wire.on('end', () => fail(new Fault('UNAVAILABLE')))
    return stream
  }

  function endIfIdle(stream: Stream): void {
    if (stream !== current && stream.pending.size === 0) stream.wire.end()
  }

  function nextTag(): number {
    lastTag = (lastTag % 0xffff_ffff) + 1
    return lastTag
  }

  function call(method: string, request: Buffer, context: Context): Promise<Buffer> {
    const { deadline, signal } = context
    if (pendingCalls >= MOST_PENDING) throw new Fault('SERVER_TOO_MANY_REQUESTS')
    const timeoutMs = Math.max(1, deadline ? deadline.getTime() - Date.now() : CALL_LIMIT_MS)
    const tag = nextTag()
    const message = { tag, method, request, context: contextToMessage(context), timeoutMs }
    const bytes = bytesOf(Call.encode(message))

    current ??= open()
    const stream = current
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        stream.pending.delete(tag)
        pendingCalls--
        inTime()
        wanted()
        endIfIdle(stream)
      }
      const giveUp = (fault: Fault): void => {
        stream.wire.write(bytesOf(Call.encode(Call.fromPartial({ tag }))))
        settle()
        reject(fault)
      }
      stream.pending.set(tag, {
        giveUp,
        resolve(response) {
          settle()
          resolve(response)
        },
        reject(fault) {
          settle()
          reject(fault)
        },
      })
      pendingCalls++
      const inTime = after(timeoutMs, () => giveUp(new Fault('TIMEOUT')))
      const wanted = whenAborted(signal, () => giveUp(abortedBy(signal)))
      stream.wire.write(bytes)
    })
  }

  return {
    call,
    pending: () => pendingCalls,
    ping() {
      current ??= open()
      current.wire.write(bytesOf(Call.encode(Call.fromPartial({ tag: nextTag(), method: PING }))))
    },
    fail(fault) {
      for (const { pending } of streams) for (const { giveUp } of [...pending.values()]) giveUp(fault)
    },
    close() {
      for (const { wire } of streams) wire.cancel()
    },
  }
}

/** What a caller gets whose own signal ended the call. */
export const abortedBy = ({ reason }: AbortSignal): Fault =>
  reason instanceof Fault ? reason : new Fault('UNAVAILABLE', undefined, reason)

const asItIs = (bytes: Buffer): Buffer => bytes
