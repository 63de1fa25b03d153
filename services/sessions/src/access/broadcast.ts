import { type EncodedMessage, encodeMessage, type Outgoing } from '@overlay/channel'
import { yielder } from '@overlay/platform/async'
import type { RouterChannel } from '../control/router-channel.js'

/** Sends messages to many routers, in order, each encoded once. */
export interface Broadcast {
  send(message: Outgoing): void
  /** Called when all messages before it have been handed to the channels. */
  afterwards(done: () => void): void
}

/** `routers` is read for each message. With many of them other work has its turn in between. */
export function openBroadcast(routers: () => Iterable<RouterChannel>): Broadcast {
  const queue: (EncodedMessage | (() => void))[] = []
  let isRunning = false

  async function run(): Promise<void> {
    const yieldNow = yielder()
    for (let next = queue.shift(); next; next = queue.shift()) {
      if (typeof next === 'function') {
        next()
        continue
      }
      for (const { channel } of [...routers()]) {
        channel.send(next)
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
    send(message) {
      queue.push(encodeMessage(message))
      start()
    },
    afterwards(done) {
      queue.push(done)
      start()
    },
  }
}
