import { type Message, TooManyFields } from '@overlay/channel'
import { boundedLines, metrics } from '@overlay/platform/process'
import type { Logger } from 'pino'
import { type Concern, type Handler, MOST_BYTES } from './handlers.js'
import type { RouterChannel } from './router-channel.js'
import { openWorkBudget, type WorkBudget } from './work-budget.js'

export type Dispatch = (message: Message, router: RouterChannel) => Promise<void> | void

const UNITS_PER_MESSAGE = 40
const BYTES_PER_UNIT = 64

/**
 * Gives each message to the handlers of its type: faults have one for links and one for circuits. Messages of other
 * types, and those beyond the limits, are dropped. A router whose messages cost more than its share waits. Throws if the
 * message is malformed; a failure of a handler is logged.
 */
export function openDispatch(concerns: readonly Concern[], log: Logger): Dispatch {
  const handlers = new Map<number, Handler[]>()
  for (const handler of concerns.flatMap(({ handlers }) => handlers))
    handlers.set(handler.type, [...(handlers.get(handler.type) ?? []), handler])
  const budgets = new WeakMap<RouterChannel, WorkBudget>()
  const noteOversized = boundedLines(log, 'message of a router dropped: it is too large')

  function budgetOf(router: RouterChannel): WorkBudget {
    const known = budgets.get(router)
    if (known) return known
    const budget = openWorkBudget()
    budgets.set(router, budget)
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
      log.error({ err, routerId: router.routerId, type }, 'message of a router not handled')
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

  function oversized({ type, body }: Message, { routerId }: RouterChannel): void {
    metrics.routerMessages.inc({ type: String(type), result: 'oversized' })
    noteOversized(routerId, { routerId, type, bytes: body.length })
  }

  return (message, router) => {
    const ofType = handlers.get(message.type)
    const budget = budgetOf(router)
    const spend = (): void => budget.spend(UNITS_PER_MESSAGE + sizeOf(message) / BYTES_PER_UNIT)
    if (!ofType)
      return budget.run(() => {
        spend()
        metrics.routerMessages.inc({ type: 'unknown', result: 'dropped' })
      })
    if (message.body.length > Math.max(...ofType.map(({ mostBytes = MOST_BYTES }) => mostBytes))) {
      spend() // and its bytes do not wait
      return oversized(message, router)
    }
    return budget.run(() => {
      if (router.channel.closed.aborted) return
      spend()
      return handle(message, router, ofType, budget.spend)
    })
  }
}

function sizeOf({ headers, body }: Message): number {
  let bytes = body.length
  for (const value of headers.values()) bytes += value.length
  return bytes
}
