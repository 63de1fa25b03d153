import type { Message } from '@overlay/channel'
import { metrics } from '@overlay/platform/process'
import type { Logger } from 'pino'
import type { Concern, Handler } from './handlers.js'
import type { RouterChannel } from './router-channel.js'

export type Dispatch = (message: Message, router: RouterChannel) => Promise<void> | void

/**
 * Gives each message to the handlers of its type: faults have one for links and one for circuits. Messages of other
 * types are dropped. Throws if the message is malformed; a failure of a handler is logged.
 */
export function openDispatch(concerns: readonly Concern[], log: Logger): Dispatch {
  const handlers = new Map<number, Handler[]>()
  for (const handler of concerns.flatMap(({ handlers }) => handlers))
    handlers.set(handler.type, [...(handlers.get(handler.type) ?? []), handler])
  return (message, router) => {
    const { type } = message
    const ofType = handlers.get(type)
    if (!ofType) {
      metrics.routerMessages.inc({ type: 'unknown', result: 'dropped' })
      return
    }
    const count = (result: string): void => metrics.routerMessages.inc({ type: String(type), result })
    const prepared: ReturnType<Handler['prepare']>[] = []
    try {
      for (const handler of ofType) prepared.push(handler.prepare(message, router))
    } catch (err) {
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
}
