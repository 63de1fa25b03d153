import { answerIn } from './answer-in.js'
import { bytesOf } from './bytes.js'
import { type Context, contextToMessage } from './context.js'
import { Unreachable } from './dial.js'
import { type Ending, endingOf } from './ending.js'
import { Fault, faultFromMessage } from './fault.js'
import { Call } from './gen/overlay/stream/v1/stream.js'
import { expireAfter, MESSAGE_LIMIT_BYTES } from './limits.js'
import { MAX_PENDING, openPendingCalls, type PendingCalls } from './pending-calls.js'
import type { Wire, WireEvents } from './wire.js'

/** The multiplexed calls to one replica. */
export interface MuxClient {
  /** @param limitMs of a call that has no deadline */
  call(method: string, request: Buffer, context: Context, limitMs: number): Promise<Buffer>
  pending(): number
  /** Whether a wire is open. */
  isOpen(): boolean
  /** Asks for an answer that shows that the replica is alive. */
  ping(): void
  /** Ends all pending calls; the wire stays. */
  fail(fault: Fault): void
  /** Ends all pending calls with their wires. Later calls open another one. */
  reset(): void
  /** For a client that makes no more calls. Resolves when the pending ones have ended as they do, and their wires. */
  end(): Promise<void>
}

/** One wire and its pending calls, which fail when it closes. */
interface Line {
  /** Undefined until it is open. */
  wire: Wire | undefined
  readonly pending: PendingCalls
  closed(err?: unknown): void
}

/** Not the name of a method: a replica of a release that does not know it answers with a fault. */
export const PING = 'ping'

/** Opens a wire. Rejects with a Fault. */
export type OpenWire = (events: WireEvents) => Promise<Wire>

/** Keeps one wire open while there are calls, and opens another when it closes. Calls `onAnswer` for each answer. */
export function openMuxClient(open: OpenWire, onAnswer: () => void = () => undefined): MuxClient {
  const lines = new Set<Line>() // the current one, and older ones until their last answer
  let current: Line | undefined
  let pendingCalls = 0
  let onLastLine: (() => void) | undefined
  let lastTag = 0

  function openLine(): Line {
    const pending = openPendingCalls()
    const closed = (err?: unknown): void => {
      if (!lines.delete(line)) return
      if (current === line) current = undefined
      const fault = err instanceof Fault ? err : new Fault('UNAVAILABLE', undefined, err)
      for (const { reject } of pending.all()) reject(fault)
      if (lines.size === 0) onLastLine?.()
    }
    const line: Line = { wire: undefined, pending, closed }
    lines.add(line)
    const opening = open({
      message(bytes) {
        const { tag, response, fault } = answerIn(bytes)
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
    opening.then((wire) => {
      if (!lines.has(line)) return wire.destroy()
      line.wire = wire
      for (const { bytes } of pending.all()) wire.send(bytes)
      endIfIdle(line)
    }, closed)
    return line
  }

  function endIfIdle(line: Line): void {
    if (line !== current && line.pending.count() === 0) line.wire?.end()
  }

  function nextTag(): number {
    lastTag = (lastTag % 0xffff_ffff) + 1
    return lastTag
  }

  function call(method: string, request: Buffer, context: Context, limitMs: number): Promise<Buffer> {
    if (pendingCalls >= MAX_PENDING || current?.wire?.isStuck()) throw new Fault('SERVER_TOO_MANY_REQUESTS')
    const timeoutMs = restMs(context, limitMs)
    current ??= openLine()
    const line = current
    let tag = nextTag()
    while (!line.pending.isFree(tag)) tag = nextTag()
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
        line.wire?.send(encodeCall({ tag }))
        settle()
        reject(fault)
      }
      line.pending.add({
        tag,
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
      const ending = endingOf(context)
      const cancelDeadline = expireAfter(timeoutMs, () => cancel(new Fault('TIMEOUT')))
      const removeListener = ending.listen(() => cancel(abortedBy(ending)))
      line.wire?.send(bytes)
    })
  }

  return {
    call,
    pending: () => pendingCalls,
    isOpen: () => current?.wire !== undefined,
    ping() {
      current ??= openLine()
      current.wire?.send(encodeCall({ tag: nextTag(), method: PING }))
    },
    fail(fault) {
      for (const { pending } of lines) for (const { cancel } of pending.all()) cancel(fault)
    },
    reset() {
      for (const { wire, closed } of lines) {
        closed()
        wire?.destroy()
      }
    },
    end() {
      current = undefined
      for (const line of lines) {
        if (line.wire) endIfIdle(line)
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
  bytesOf(Call.encode({ tag: 0, method: '', request: EMPTY, context: undefined, timeoutMs: 0, ...call }))

const EMPTY = Buffer.alloc(0)

/** The fault of a call that its caller has ended. */
export function abortedBy({ reason }: Pick<Ending, 'reason'>): Fault {
  const why = reason()
  return why instanceof Fault ? why : new Fault('UNAVAILABLE', undefined, why)
}
