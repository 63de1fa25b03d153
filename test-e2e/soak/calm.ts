/** The current fault, and the time limits that follow from it. */
export interface Calm {
  begin(fault: string): void
  end(): void
  fault(): string | undefined
  /** No fault, and none within the last seconds. */
  isCalm(): boolean
  /** Whether the effect of an event at `since` (performance.now) is overdue. */
  isOverdue(since: number): boolean
}

const CALM_AFTER_MS = 5000
const IN_CALM_MS = 1000
const AFTER_FAULT_MS = 2000
const AT_MOST_MS = 60_000 // in any case

/** @param slack multiplies the limits of a quiet machine: 1 s in calm, 2 s after the end of a fault */
export function openCalm(slack: number): Calm {
  let fault: string | undefined
  let endedAt = performance.now()
  return {
    begin(name) {
      fault = name
    },
    end() {
      fault = undefined
      endedAt = performance.now()
    },
    fault: () => fault,
    isCalm: () => fault === undefined && performance.now() - endedAt > CALM_AFTER_MS,
    isOverdue(since) {
      const now = performance.now()
      if (fault !== undefined) return now - since > AT_MOST_MS * slack
      return now > Math.max(since + IN_CALM_MS * slack, endedAt + AFTER_FAULT_MS * slack)
    },
  }
}
