import { openBackoff, openSerial } from '@overlay/process/async'
import { isAway } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import type { RouterChannel } from '../channel/router-channel.js'
import { REPORT_PAUSES } from '../limits.js'

/** Repeats work while the database is unavailable and the router is connected. The work may have had its effect before. */
export type Persist = <T>(work: (isRepeated: boolean) => Promise<T>) => Promise<T>

/**
 * Runs tasks one at a time, in order. Resolves when the task has ended, or before if the database is unavailable: what waits for
 * it holds up no other messages of the router, unless more than `limit` links wait.
 */
export type ReportQueue = (links: number, task: (persist: Persist) => Promise<void>) => Promise<void>

/** Of one connection of a router. Routers report links and their faults once, and all links when they connect again. */
export function openReportQueue(
  { routerId, channel }: RouterChannel,
  limit: number,
  log: Logger,
): ReportQueue {
  const { closed } = channel
  const serially = openSerial()
  const backoff = openBackoff(REPORT_PAUSES)
  const held = new Set<() => void>()
  let waiting = 0

  async function persist<T>(work: (isRepeated: boolean) => Promise<T>): Promise<T> {
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        const result = await work(isRepeated)
        backoff.reset()
        return result
      } catch (err) {
        if (closed.aborted || !isAway(err)) throw err
        for (const letGo of held) letGo()
        await backoff.pause(closed)
        closed.throwIfAborted()
      }
    }
  }

  /** Waits for the task or until the database is unavailable. Failures of the task are logged if its message no longer waits. */
  async function whileHeld(running: Promise<void>): Promise<void> {
    const { promise: released, resolve } = Promise.withResolvers<void>()
    held.add(resolve)
    if (!backoff.isReset()) resolve()
    let isHeld = true
    running.catch((err: unknown) => {
      if (!isHeld && !closed.aborted) log.error({ err, routerId }, 'links of a router not stored')
    })
    await Promise.race([running, released]).finally(() => held.delete(resolve))
    isHeld = false
  }

  return (links, task) => {
    waiting += links
    const running = serially(() => task(persist)).finally(() => {
      waiting -= links
    })
    return waiting > limit ? running : whileHeld(running)
  }
}
