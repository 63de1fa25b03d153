import { asBuffer } from './as-buffer.js'
import { faultOfCancelled } from './cancellation.js'
import type { Context } from './context.js'
import { contextToMessage } from './context-codec.js'
import { expireAfter } from './deadlines.js'
import { Unreachable } from './dial.js'
import { Fault, faultFromMessage } from './fault.js'
import type { FrameConnection, FrameEvents } from './frame-connection.js'
import { Answer, Call } from './gen/overlay/stream/v1/stream.js'
import { MAX_PENDING_CALLS, MESSAGE_LIMIT_BYTES } from './limits.js'
import { onAbort } from './on-abort.js'

/** The multiplexed calls to one replica. */
export interface MuxClient {
  /** @param limitMs of a call that has no deadline */
  call(method: string, request: Buffer, context: Context, limitMs: number): Promise<Buffer>
  pending(): number
  /** Whether a connection is open. */
  isOpen(): boolean
  /** Asks for an answer that shows that the replica is alive. */
  ping(): void
  /** Ends all pending calls; the connection stays. */
  fail(fault: Fault): void
  /** Ends all pending calls with their connections. Later calls open another one. */
  reset(): void
  /** For a client that makes no more calls. Resolves when the pending ones have ended as they do, and their connections. */
  end(): Promise<void>
}

/** A call that waits for its answer. */
interface Pending {
  readonly bytes: Buffer
  resolve(response: Buffer): void
  reject(fault: Fault): void
  /** Rejects, and cancels the call at the replica. */
  cancel(fault: Fault): void
}

/** One connection and its pending calls, which fail when it closes. */
interface Line {
  /** Undefined until it is open. */
  connection: FrameConnection | undefined
  /** By tag. */
  readonly pending: Map<number, Pending>
  closed(err?: unknown): void
}

/** Not the name of a method: a replica of a release that does not know it answers with a fault. */
export const PING = 'ping'

/** Opens a connection. Rejects with an error. */
export type OpenConnection = (events: FrameEvents) => Promise<FrameConnection>

/** Keeps one connection open while there are calls, and opens another when it closes. Calls `onAnswer` for each answer. */
export function openMuxClient(open: OpenConnection, onAnswer: () => void = () => undefined): MuxClient {
  const lines = new Set<Line>() // the current one, and older ones until their last answer
  let current: Line | undefined
  let pendingCalls = 0
  let onLastLine: (() => void) | undefined
  let lastTag = 0

  function openLine(): Line {
    const pending = new Map<number, Pending>()
    const closed = (err?: unknown): void => {
      if (!lines.delete(line)) return
      if (current === line) current = undefined
      const fault = err instanceof Fault ? err : new Fault('UNAVAILABLE', undefined, err)
      for (const { reject } of pending.values()) reject(fault)
      if (lines.size === 0) onLastLine?.()
    }
    const line: Line = { connection: undefined, pending, closed }
    lines.add(line)
    const opening = open({
      message(bytes) {
        const { tag, response, fault } = Answer.decode(bytes)
        onAnswer()
        if (tag === 0) {
          if (current === line) current = undefined
          endIfIdle(line)
        } else if (fault) pending.get(tag)?.reject(faultFromMessage(fault))
        else pending.get(tag)?.resolve(response)
      },
      ended: closed,
      drained: () => undefined,
      closed,
    })
    opening.then((connection) => {
      if (!lines.has(line)) return connection.destroy()
      line.connection = connection
      for (const { bytes } of pending.values()) connection.send(bytes)
      endIfIdle(line)
    }, closed)
    return line
  }

  function endIfIdle(line: Line): void {
    if (line !== current && line.pending.size === 0) line.connection?.end()
  }

  function nextTag(): number {
    lastTag = (lastTag % 0xffff_ffff) + 1
    return lastTag
  }

  function call(method: string, request: Buffer, context: Context, limitMs: number): Promise<Buffer> {
    if (pendingCalls >= MAX_PENDING_CALLS || current?.connection?.isStuck())
      throw new Fault('SERVER_TOO_MANY_REQUESTS')
    const timeoutMs = restMs(context, limitMs)
    current ??= openLine()
    const line = current
    let tag = nextTag()
    while (line.pending.has(tag)) tag = nextTag()
    const bytes = encodeCall({
      tag,
      method,
      request,
      context: contextToMessage(context),
      timeoutMs: Number.isFinite(timeoutMs) ? timeoutMs : 0,
    })
    if (bytes.length > MESSAGE_LIMIT_BYTES)
      throw new Fault('UNHANDLED', undefined, new Error(`${method} with ${bytes.length} bytes`))

    return new Promise((resolve, reject) => {
      const settle = (): void => {
        line.pending.delete(tag)
        pendingCalls--
        cancelDeadline()
        removeListener()
        endIfIdle(line)
      }
      const cancel = (fault: Fault): void => {
        line.connection?.send(encodeCall({ tag }))
        settle()
        reject(fault)
      }
      line.pending.set(tag, {
        bytes,
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
      const { signal } = context
      const cancelDeadline = expireAfter(timeoutMs, () => cancel(new Fault('TIMEOUT')))
      const removeListener = onAbort(signal, () => cancel(faultOfCancelled(signal)))
      line.connection?.send(bytes)
    })
  }

  return {
    call,
    pending: () => pendingCalls,
    isOpen: () => current?.connection !== undefined,
    ping() {
      current ??= openLine()
      current.connection?.send(encodeCall({ tag: nextTag(), method: PING }))
    },
    fail(fault) {
      for (const { pending } of lines) for (const { cancel } of pending.values()) cancel(fault)
    },
    reset() {
      for (const { connection, closed } of lines) {
        closed()
        connection?.destroy()
      }
    },
    end() {
      current = undefined
      for (const line of lines) {
        if (line.connection) endIfIdle(line)
        else line.closed(new Unreachable('the replica has left before it was connected'))
      }
      if (lines.size === 0) return Promise.resolve()
      return new Promise((resolve) => {
        onLastLine = resolve
      })
    },
  }
}

/** The time that a call has left. */
export const restMs = ({ deadline }: Context, limitMs: number): number =>
  Math.max(1, deadline ? deadline.getTime() - Date.now() : limitMs)

const encodeCall = (call: Partial<Call>): Buffer =>
  asBuffer(
    Call.encode({ tag: 0, method: '', request: EMPTY, context: undefined, timeoutMs: 0, ...call }).finish(),
  )

const EMPTY = Buffer.alloc(0)
