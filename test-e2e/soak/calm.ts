/** The current fault, and the time limits that follow from it. */
export interface Calm {
  begin(fault: string): void
  end(): void
  fault(): string | undefined
  /** No fault, and none within the last seconds. */
  isCalm(): boolean
  /** Whether the effect of an event at `since` (performance.now) is overdue. */
  isOverdue(since: number): boolean
  /** How long a gateway may accept a token after its end. No fault excuses more: it trusts no cache without news. */
  tokenMs(): number
}

const CALM_AFTER_MS = 5000
const IN_CALM_MS = 1000
const AFTER_FAULT_MS = 2000
const WITHOUT_BUS_MS = 2000
const AT_MOST_MS = 60_000 // during other faults

/** @param slack multiplies the limits of a quiet machine: 1 s in calm, 2 s without the bus and after a fault */
export function openCalm(slack: number): Calm {
  let fault: string | undefined
  let endedAt = performance.now()
  const isCalm = (): boolean => fault === undefined && performance.now() - endedAt > CALM_AFTER_MS
  return {
    begin(name) {
      fault = name
    },
    end() {
      fault = undefined
      endedAt = performance.now()
    },
    fault: () => fault,
    isCalm,
    isOverdue(since) {
      const now = performance.now()
      // without hints, replicas look by themselves
      if (fault?.startsWith('bus-')) return now > Math.max(since, endedAt) + WITHOUT_BUS_MS * slack
      if (fault !== undefined) return now - since > AT_MOST_MS * slack
      return now > Math.max(since + IN_CALM_MS * slack, endedAt + AFTER_FAULT_MS * slack)
    },
    tokenMs: () => (isCalm() ? IN_CALM_MS : WITHOUT_BUS_MS) * slack,
  }
}
