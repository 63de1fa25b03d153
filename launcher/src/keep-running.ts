import { openBackoff } from '@overlay/platform/async/backoff'
import type { Running } from './die-with-parent.js'

/** Something that is started again whenever it ends before it is asked to. */
export interface Kept {
  pid(): number
  stop(): Promise<void>
}

const pauses = { firstMs: 100, longestMs: 5000 }
const steadyMs = 10_000 // who has run as long is started again without a longer pause

export function keepRunning(
  first: Running,
  start: () => Promise<Running>,
  say: (line: string) => void,
): Kept {
  const stopping = new AbortController()
  let running = first

  /** How it ended, or why it could not be started. */
  const restarted = async (): Promise<string> => {
    try {
      running = await start()
    } catch (err) {
      return (err as Error).message
    }
    if (stopping.signal.aborted) await running.stop()
    return running.ended
  }

  const watch = async (): Promise<void> => {
    const backoff = openBackoff(pauses)
    let since = Date.now()
    let reason = await first.ended
    while (!stopping.signal.aborted) {
      if (Date.now() - since > steadyMs) backoff.reset()
      say(`${reason}; starting it again in ${backoff.nextMs / 1000} s`)
      await backoff.pause(stopping.signal)
      if (stopping.signal.aborted) return
      since = Date.now()
      reason = await restarted()
    }
  }
  const watching = watch()

  return {
    pid: () => running.pid,
    async stop() {
      stopping.abort()
      await running.stop()
      await watching
    },
  }
}
