import { setTimeout as delay } from 'node:timers/promises'
import { BURST_UNITS, UNITS_PER_SECOND } from '../limits.js'

/** The share of one router in the work of this process. A unit is about a microsecond on the event loop. */
export interface WorkBudget {
  /** Runs a task: at once, or in order as soon as the router has paid for its earlier messages. */
  run<T>(task: () => T): T | Promise<Awaited<T>>
  spend(units: number): void
  /** Equal to a new one. */
  isFull(): boolean
}

export interface WorkBudgetOptions {
  readonly unitsPerSecond?: number
  /** What an idle router may spend at once. */
  readonly burst?: number
  /** In milliseconds. */
  readonly now?: () => number
  readonly pause?: (ms: number) => Promise<unknown>
}

/**
 * A router that spends more than its share waits, and with it the rest of its messages: its channel stops reading. No
 * message is lost, and other routers go on.
 */
export function openWorkBudget({
  unitsPerSecond = UNITS_PER_SECOND,
  burst = BURST_UNITS,
  now = () => performance.now(),
  pause = (ms) => delay(ms, undefined, { ref: false }),
}: WorkBudgetOptions = {}): WorkBudget {
  let left = burst
  let filledAt = now()
  let waiting = 0
  let last: Promise<void> = Promise.resolve()

  function fill(): void {
    const at = now()
    left = Math.min(burst, left + ((at - filledAt) / 1000) * unitsPerSecond)
    filledAt = at
  }

  async function untilPaid(): Promise<void> {
    for (fill(); left < 0; fill()) await pause(Math.ceil((-left / unitsPerSecond) * 1000))
    waiting--
  }

  return {
    run<T>(task: () => T) {
      fill()
      if (waiting === 0 && left >= 0) return task()
      waiting++
      const turn = last.then(untilPaid)
      last = turn
      return turn.then(task) as Promise<Awaited<T>>
    },
    spend(units) {
      left -= units
    },
    isFull() {
      fill()
      return waiting === 0 && left === burst
    },
  }
}
