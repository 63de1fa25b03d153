import { openBackoff } from '@overlay/process/async/backoff'
import { RESTART_PAUSES, STEADY_RUN_MS } from '../limits.js'
import type { RunningProcess } from './start-program.js'

/** A process that is restarted when it ends by itself. */
export interface Supervised {
  pid(): number
  stop(): Promise<void>
}

/** Restarts a process after each end until it is stopped. Pauses grow while restarts fail. */
export function supervise(
  first: RunningProcess,
  start: () => Promise<RunningProcess>,
  print: (line: string) => void,
): Supervised {
  const stopping = new AbortController()
  let running = first

  /** Resolves with the reason of the end, or of the failed start. */
  const restart = async (): Promise<string> => {
    try {
      running = await start()
    } catch (err) {
      return (err as Error).message
    }
    if (stopping.signal.aborted) await running.stop()
    return running.ended
  }

  const watch = async (): Promise<void> => {
    const backoff = openBackoff(RESTART_PAUSES)
    let since = Date.now()
    let reason = await first.ended
    while (!stopping.signal.aborted) {
      if (Date.now() - since > STEADY_RUN_MS) backoff.reset()
      print(`${reason}; starting it again in ${backoff.nextMs() / 1000} s`)
      await backoff.pause(stopping.signal)
      if (stopping.signal.aborted) return
      since = Date.now()
      reason = await restart()
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
