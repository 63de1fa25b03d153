import type { Message, Outgoing } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { type RouterChannels, type RouterMessages, RouterOffline } from '../channel/router-channel.js'
import type { RouterPresence } from '../routers/router-presence.js'
import { openCommandReceiver } from './command-receiver.js'
import { type CommandOptions, openCommandSender } from './command-sender.js'

export interface MessagesOptions extends CommandOptions {
  readonly channels: RouterChannels
  readonly presence: Pick<RouterPresence, 'of'>
  /** Undefined: this replica has no routers. */
  readonly replicaId: string | undefined
}

/** Messages to routers: over the channel of this replica, else through one other replica that has a channel. */
export function openRouterMessages(options: MessagesOptions): RouterMessages & AsyncDisposable {
  const { channels, presence, replicaId, log } = options
  const opened = new AsyncDisposableStack()
  const sender = opened.use(openCommandSender(options))
  const hasRouters = (): boolean => !channels.all()[Symbol.iterator]().next().done
  if (replicaId !== undefined) opened.use(openCommandReceiver({ ...options, replicaId, execute, hasRouters }))

  async function execute(
    routerId: string,
    message: Outgoing,
    timeoutMs: number,
  ): Promise<Message | undefined> {
    const channel = channels.get(routerId)?.channel
    if (!channel) throw new RouterOffline(`router ${routerId} is not connected to this replica`)
    if (timeoutMs > 0) return channel.request(message, timeoutMs)
    channel.send(message)
    return undefined
  }

  const isElsewhere = (routerId: string): boolean =>
    presence.of(routerId).some(({ replicaId: other }) => other !== replicaId)

  /** Tries the replicas to which the router is connected, the newest connection first. */
  async function elsewhere(
    routerId: string,
    message: Outgoing,
    timeoutMs: number,
  ): Promise<Message | undefined> {
    const until = performance.now() + timeoutMs
    for (const { replicaId: other } of presence.of(routerId)) {
      if (other === replicaId) continue
      const leftMs = timeoutMs && Math.ceil(until - performance.now())
      if (leftMs < 0) break
      try {
        return await sender.command(other, routerId, message, leftMs)
      } catch (err) {
        if (!(err instanceof RouterOffline)) throw err
      }
    }
    throw new RouterOffline(`router ${routerId} is offline`)
  }

  return {
    send(routerId, message) {
      const local = channels.get(routerId)
      if (local) return local.channel.send(message)
      if (!isElsewhere(routerId)) return metrics.routerMessagesLost.inc()
      elsewhere(routerId, message, 0).catch((err: unknown) => {
        metrics.routerMessagesLost.inc()
        if (!(err instanceof RouterOffline)) log.warn({ err, routerId }, 'message to a router lost')
      })
    },
    async request(routerId, message, timeoutMs) {
      const local = channels.get(routerId)
      if (local) return local.channel.request(message, timeoutMs)
      const reply = await elsewhere(routerId, message, timeoutMs)
      if (!reply) throw new Error('a request without a reply')
      return reply
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
