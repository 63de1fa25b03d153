import type { Message } from '@overlay/channel'
import { metrics } from '@overlay/platform/process'
import type { Logger } from 'pino'
import type { Concern, Handler } from './handlers.js'
import type { RouterChannel } from './router-channel.js'

export type Dispatch = (message: Message, router: RouterChannel) => Promise<void> | void

/**
 * Gives each message to the handler of its type. Messages of other types are dropped. Throws if the message is
 * malformed; a failure of the handler is logged.
 */
export function openDispatch(concerns: readonly Concern[], log: Logger): Dispatch {
  const handlers = new Map<number, Handler>()
  for (const handler of concerns.flatMap(({ handlers }) => handlers)) {
    if (handlers.has(handler.type)) throw new Error(`two handlers of messages of type ${handler.type}`)
    handlers.set(handler.type, handler)
  }
  return (message, router) => {
    const { type } = message
    const handler = handlers.get(type)
    if (!handler) {
      metrics.routerMessages.inc({ type: 'unknown', result: 'dropped' })
      return
    }
    const count = (result: string): void => metrics.routerMessages.inc({ type: String(type), result })
    let handle: ReturnType<Handler['prepare']>
    try {
      handle = handler.prepare(message, router)
    } catch (err) {
      count('malformed')
      throw new Error(`malformed message of type ${type}`, { cause: err })
    }
    const failed = (err: unknown): void => {
      count('failed')
      log.error({ err, routerId: router.routerId, type }, 'message of a router not handled')
    }
    try {
      const handling = handle()
      if (handling) return handling.then(() => count('ok'), failed)
      count('ok')
    } catch (err) {
      failed(err)
    }
  }
}
