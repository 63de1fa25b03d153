import { type EncodedMessage, encodeMessage, type Outgoing } from '@overlay/channel'
import { yielder } from '@overlay/process/async'
import type { RouterChannel } from '../channel/router-channel.js'
import type { Routers } from '../domain/audiences.js'

/** Sends messages to many routers, in order, each encoded once. */
export interface Broadcast {
  /** To those of the routers that are connected. */
  send(message: Outgoing, to: Routers): void
  /** Called when all messages before it have been handed to the channels. */
  afterwards(done: () => void): void
}

interface Sent {
  readonly message: EncodedMessage
  readonly to: Routers
}

/** `routers` is read for each message. With many of them other work has its turn in between. */
export function openBroadcast(routers: () => Iterable<RouterChannel>): Broadcast {
  const queue: (Sent | (() => void))[] = []
  let isRunning = false

  async function run(): Promise<void> {
    const yieldNow = yielder()
    for (let next = queue.shift(); next; next = queue.shift()) {
      if (typeof next === 'function') {
        next()
        continue
      }
      const { message, to } = next
      for (const { routerId, channel } of [...routers()]) {
        if (!to.has(routerId)) continue
        channel.send(message)
        await yieldNow()
      }
    }
  }
  function start(): void {
    if (isRunning) return
    isRunning = true
    void run().finally(() => {
      isRunning = false
      if (queue.length > 0) start()
    })
  }
  return {
    send(message, to) {
      queue.push({ message: encodeMessage(message), to })
      start()
    },
    afterwards(done) {
      queue.push(done)
      start()
    },
  }
}
