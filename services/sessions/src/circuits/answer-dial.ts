import { edgeErrorCode, type Message, type Outgoing } from '@overlay/channel'
import { boundedLines, LINE_LIMITS, noteFullQueue } from '@overlay/process'
import { failureOf, tracing } from '@overlay/rpc'
import type { Logger } from 'pino'
import { answer, refused } from '../channel/replies.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { AccessRefused } from '../domain/router-access.js'
import { MAX_DIALS } from '../limits.js'
import type { Circuits, OpenedCircuit } from './circuits.js'

/** A request of a router for a circuit. */
export interface Dial<T extends OpenedCircuit> {
  /** The name of its span. */
  readonly name: string
  readonly open: () => Promise<T>
  readonly encode: (opened: T) => Outgoing
}

interface DialDeps extends Pick<Circuits, 'end'> {
  readonly log: Logger
}

/**
 * Answers requests for circuits. They run outside the handlers of messages, which are few at a time: a request waits for
 * answers that arrive on the same channel.
 */
export function openDials({ end, log }: DialDeps) {
  const noteFailure = boundedLines(log, 'circuit not set up', LINE_LIMITS, 'error')
  const underWay = new Map<string, number>()

  async function create<T extends OpenedCircuit>(
    { channel }: RouterChannel,
    { open, encode }: Dial<T>,
  ): Promise<Outgoing> {
    const opened = await open()
    try {
      channel.closed.throwIfAborted()
      return encode(opened)
    } catch (err) {
      await end(opened.id) // its router does not learn of it
      throw err
    }
  }

  async function respond<T extends OpenedCircuit>(
    message: Message,
    router: RouterChannel,
    dial: Dial<T>,
  ): Promise<void> {
    const { routerId, channel } = router
    const others = underWay.get(routerId) ?? 0
    if (others >= MAX_DIALS) {
      noteFullQueue('circuits')
      channel.reply(
        message,
        refused(new AccessRefused(edgeErrorCode.internal, 'too many circuits at a time'), router),
      )
      return
    }
    underWay.set(routerId, others + 1)
    try {
      await answer(router, message, refused, () => traced(dial.name, () => create(router, dial)))
    } catch (err) {
      if (!channel.closed.aborted) noteFailure(routerId, { err, routerId })
    } finally {
      const left = (underWay.get(routerId) ?? 1) - 1
      if (left > 0) underWay.set(routerId, left)
      else underWay.delete(routerId)
    }
  }

  return <T extends OpenedCircuit>(message: Message, router: RouterChannel, dial: Dial<T>): void =>
    void respond(message, router, dial)
}

/** Serves a request of a router as the first span of a trace. */
async function traced<T>(name: string, work: () => Promise<T>): Promise<T> {
  if (!tracing) return work()
  const span = tracing.request(name)
  const outcome = { name, attributes: {} }
  return span.run(async () => {
    try {
      const result = await work()
      span.end(outcome)
      return result
    } catch (err) {
      span.end(outcome, err instanceof AccessRefused ? { code: err.name, isError: false } : failureOf(err))
      throw err
    }
  })
}
