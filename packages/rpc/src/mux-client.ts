import type { Client, ClientDuplexStream, Metadata, ServiceError } from '@grpc/grpc-js'
import { bytesOf } from './bytes.js'
import { type Context, contextToMessage } from './context.js'
import { Fault, faultFromMessage, toFault } from './fault.js'
import { type Answer, Call, CallServiceService } from './gen/overlay/stream/v1/stream.js'
import { CALL_LIMIT_MS, expireAfter, onAbort } from './limits.js'

/** The multiplexed calls to one replica. */
export interface MuxClient {
  call(method: string, request: Buffer, context: Context): Promise<Buffer>
  pending(): number
  /** Asks for an answer that shows that the replica is alive. */
  ping(): void
  /** Ends all pending calls; the stream stays. */
  fail(fault: Fault): void
  close(): void
}

interface Pending {
  resolve(response: Buffer): void
  reject(fault: Fault): void
  /** Rejects, and cancels the call at the replica. */
  cancel(fault: Fault): void
}

/** One stream and its pending calls, which fail when it ends. */
interface Stream {
  readonly wire: ClientDuplexStream<Buffer, Answer>
  readonly pending: Map<number, Pending>
}

/** More calls would time out while they wait. */
const MAX_PENDING = 1000

/** Not the name of a method: a replica of a release that does not know it answers with a fault. */
export const PING = 'ping'

/** Keeps one stream open while there are calls, and opens another when it ends. Calls `onAnswer` for each answer. */
export function openMuxClient(
  client: Client,
  metadata: () => Metadata,
  onAnswer: () => void = () => undefined,
): MuxClient {
  const streams = new Set<Stream>() // the current one, and older ones until their last answer
  let current: Stream | undefined
  let pendingCalls = 0
  let lastTag = 0

  function open(): Stream {
    const { path, responseDeserialize } = CallServiceService.calls
    const wire = client.makeBidiStreamRequest(path, asBytes, responseDeserialize, metadata())
    const stream: Stream = { wire, pending: new Map() }
    streams.add(stream)
    const fail = (fault: Fault): void => {
      streams.delete(stream)
      if (current === stream) current = undefined
      for (const { reject } of [...stream.pending.values()]) reject(fault)
    }
    wire.on('data', ({ tag, response, fault }: Answer) => {
      onAnswer()
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
    if (pendingCalls >= MAX_PENDING) throw new Fault('SERVER_TOO_MANY_REQUESTS')
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
        cancelDeadline()
        removeListener()
        endIfIdle(stream)
      }
      const cancel = (fault: Fault): void => {
        stream.wire.write(bytesOf(Call.encode(Call.fromPartial({ tag }))))
        settle()
        reject(fault)
      }
      stream.pending.set(tag, {
        cancel,
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
      const cancelDeadline = expireAfter(timeoutMs, () => cancel(new Fault('TIMEOUT')))
      const removeListener = onAbort(signal, () => cancel(abortedBy(signal)))
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
      for (const { pending } of streams) for (const { cancel } of [...pending.values()]) cancel(fault)
    },
    close() {
      for (const { wire } of streams) wire.cancel()
    },
  }
}

/** The fault of a call that its caller's signal ended. */
export const abortedBy = ({ reason }: AbortSignal): Fault =>
  reason instanceof Fault ? reason : new Fault('UNAVAILABLE', undefined, reason)

const asBytes = (bytes: Buffer): Buffer => bytes
