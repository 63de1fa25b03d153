import { STEPS_REMEMBERED } from '../limits.js'

/**
 * Steps of one sort that a request takes before the consumer reads the change that calls for them. Forgetting a step
 * costs a transaction without effect.
 */
export interface Steps {
  /** Runs `work`, which reports whether it took the step. Calls for the same id share one run. */
  run(enrollmentId: string, work: () => Promise<boolean>): Promise<boolean>
  /** Whether the step was taken here. Waits for a running one: otherwise both would take it. */
  isDone(enrollmentId: string): boolean | Promise<boolean>
}

/** What clients wait for: the enrollment that was granted, and the one that was redeemed. */
export interface EagerSteps {
  readonly granted: Steps
  readonly ended: Steps
}

export function openSteps(): Steps {
  const done = new Set<string>()
  const running = new Map<string, Promise<boolean>>()
  return {
    async run(id, work) {
      const step = running.get(id) ?? work()
      running.set(id, step)
      try {
        if (!(await step)) return false
        done.add(id)
        if (done.size > STEPS_REMEMBERED)
          for (const old of [...done].slice(0, STEPS_REMEMBERED / 2)) done.delete(old)
        return true
      } finally {
        running.delete(id)
      }
    },
    // a failure is reported to the caller of `run`
    isDone: (id) => running.get(id)?.catch(() => false) ?? done.has(id),
  }
}
