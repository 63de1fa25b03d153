import type { Client, ClientDuplexStream, Metadata, ServiceError } from '@grpc/grpc-js'
import { type Context, contextToMessage } from './context.js'
import { Fault, faultFromMessage, toFault } from './fault.js'
import { type Answer, Call, CallServiceService } from './gen/overlay/stream/v1/stream.js'
import { after, CALL_LIMIT_MS, whenAborted } from './limits.js'

/** The tagged calls to one replica. */
export interface Line {
  call(method: string, request: Buffer, context: Context): Promise<Buffer>
  pending(): number
  close(): void
}

interface Pending {
  resolve(response: Buffer): void
  reject(fault: Fault): void
}

/** One stream and what waits for it. Whatever ends the stream fails all of that. */
interface Stream {
  readonly wire: ClientDuplexStream<Buffer, Answer>
  readonly pending: Map<number, Pending>
}

/** More would wait for longer than their callers do. */
const MOST_PENDING = 1000

/** Keeps one stream open while there are calls, and opens another when it ends. */
export function openLine(client: Client, metadata: () => Metadata): Line {
  let current: Stream | undefined
  let pendingCalls = 0
  let lastTag = 0

  function open(): Stream {
    const { path, responseDeserialize } = CallServiceService.calls
    const wire = client.makeBidiStreamRequest(path, (bytes: Buffer) => bytes, responseDeserialize, metadata())
    const stream: Stream = { wire, pending: new Map() }
    const leave = (): void => {
      if (current === stream) current = undefined
    }
    const fail = (fault: Fault): void => {
      leave()
      for (const { reject } of [...stream.pending.values()]) reject(fault)
    }
    wire.on('data', ({ tag, response, fault }: Answer) => {
      if (tag === 0) {
        leave() // what is pending here is still answered
        wire.end()
      } else if (fault) stream.pending.get(tag)?.reject(faultFromMessage(fault))
      else stream.pending.get(tag)?.resolve(response)
    })
    wire.on('error', (err: ServiceError) => fail(toFault(err)))
    wire.on('end', () => fail(new Fault('UNAVAILABLE')))
    return stream
  }

  function call(method: string, request: Buffer, context: Context): Promise<Buffer> {
    const { deadline, signal } = context
    if (pendingCalls >= MOST_PENDING) throw new Fault('SERVER_TOO_MANY_REQUESTS')
    const timeoutMs = Math.max(1, deadline ? deadline.getTime() - Date.now() : CALL_LIMIT_MS)
    lastTag = (lastTag % 0xffff_ffff) + 1
    const tag = lastTag
    const bytes = Call.encode({
      tag,
      method,
      request,
      context: contextToMessage(context),
      timeoutMs,
    }).finish()

    current ??= open()
    const { wire, pending } = current
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        pending.delete(tag)
        pendingCalls--
        inTime()
        wanted()
      }
      const giveUp = (fault: Fault): void => {
        settle()
        reject(fault)
        if (wire.writable) wire.write(Buffer.from(Call.encode(Call.fromPartial({ tag })).finish()))
      }
      pending.set(tag, {
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
      wire.write(Buffer.from(bytes))
    })
  }

  return {
    call,
    pending: () => pendingCalls,
    close: () => current?.wire.cancel(),
  }
}

/** What a caller gets whose own signal ended the call. */
export const abortedBy = ({ reason }: AbortSignal): Fault =>
  reason instanceof Fault ? reason : new Fault('UNAVAILABLE', undefined, reason)
