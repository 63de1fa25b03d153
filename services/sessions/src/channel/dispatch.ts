import { bodyBytesOf, type Message, ownTypes, TooManyFields } from '@overlay/channel'
import { boundedLines, LINE_LIMITS, metrics } from '@overlay/process'
import type { Logger } from 'pino'
import { BYTES_PER_UNIT, MOST_BUDGETS, MOST_BYTES, UNITS_PER_MESSAGE } from '../limits.js'
import type { Concern, Handler } from './handlers.js'
import { sends } from './message-senders.js'
import type { RouterChannel } from './router-channel.js'
import { openWorkBudget, type WorkBudget } from './work-budget.js'

export type Dispatch = (message: Message, router: RouterChannel) => Promise<void> | void

/**
 * Gives each message to the handlers of its type: faults have one for links and one for circuits. Messages of other
 * types, those that a router like this one does not send, and those beyond the limits are dropped. Those that the channel
 * answers itself only count. A router whose messages cost more than its share waits. Throws if the message is malformed; a
 * failure of a handler is logged.
 */
export function openDispatch(concerns: readonly Concern[], log: Logger): Dispatch {
  const handlers = new Map<number, Handler[]>([...ownTypes].map((type) => [type, [answered(type)]]))
  for (const handler of concerns.flatMap(({ handlers }) => handlers))
    handlers.set(handler.type, [...(handlers.get(handler.type) ?? []), handler])
  const budgets = new Map<string, WorkBudget>() // by router: one that connects again goes on with what it has
  const noteFailure = boundedLines(log, 'message of a router not handled', LINE_LIMITS, 'error')
  const noteOversized = boundedLines(log, 'message of a router dropped: it is too large')

  function budgetOf({ routerId }: RouterChannel): WorkBudget {
    const known = budgets.get(routerId)
    if (known) return known
    if (budgets.size >= MOST_BUDGETS) for (const [id, one] of budgets) if (one.isFull()) budgets.delete(id)
    const budget = openWorkBudget()
    budgets.set(routerId, budget)
    return budget
  }

  function handle(
    message: Message,
    router: RouterChannel,
    ofType: readonly Handler[],
    spend: (units: number) => void,
  ): Promise<void> | void {
    const { type } = message
    const count = (result: string): void => metrics.routerMessages.inc({ type: String(type), result })
    const prepared: ReturnType<Handler['prepare']>[] = []
    try {
      for (const handler of ofType) prepared.push(handler.prepare(message, router, spend))
    } catch (err) {
      if (err instanceof TooManyFields) return oversized(message, router)
      count('malformed')
      throw new Error(`malformed message of type ${type}`, { cause: err })
    }
    let isOk = true
    const failed = (err: unknown): void => {
      isOk = false
      noteFailure(router.routerId, { err, type, routerId: router.routerId })
    }
    const finish = (): void => count(isOk ? 'ok' : 'failed')
    const handling: Promise<void>[] = []
    for (const handle of prepared) {
      try {
        const running = handle()
        if (running) handling.push(running.catch(failed))
      } catch (err) {
        failed(err)
      }
    }
    if (handling.length > 0) return Promise.all(handling).then(finish)
    finish()
  }

  function oversized(message: Message, { routerId }: RouterChannel): void {
    const { type } = message
    metrics.routerMessages.inc({ type: String(type), result: 'oversized' })
    noteOversized(routerId, { routerId, type, bytes: bodyBytesOf(message) })
  }

  return (message, router) => {
    const ofType = sends(router.features, message.type) ? handlers.get(message.type) : undefined
    const budget = budgetOf(router)
    return budget.run(() => {
      if (router.channel.closed.aborted) return
      budget.spend(UNITS_PER_MESSAGE + sizeOf(message) / BYTES_PER_UNIT)
      if (!ofType) return void metrics.routerMessages.inc({ type: 'unknown', result: 'dropped' })
      const mostBytes = Math.max(...ofType.map(({ mostBytes = MOST_BYTES }) => mostBytes))
      if (bodyBytesOf(message) > mostBytes) return oversized(message, router)
      return handle(message, router, ofType, budget.spend)
    })
  }
}

/** The channel has answered it. It counts, as others do. */
const answered = (type: number): Handler => ({ type, prepare: () => () => undefined })

function sizeOf(message: Message): number {
  let bytes = bodyBytesOf(message)
  for (const value of message.headers.values()) bytes += value.length
  return bytes
}
