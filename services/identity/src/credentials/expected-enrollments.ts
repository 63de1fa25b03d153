const MAX_IDS = 10_000
/** Shorter than the row of an expected enrollment is kept without the enrollment, see outstanding-enrollments.ts. */
const EXPECTED_MS = 300_000

/** The enrollments that this replica expects soon. Forgetting one costs a transaction without effect. */
export interface ExpectedEnrollments {
  add(id: string): void
  has(id: string): boolean
  remove(id: string): void
}

export function expectedEnrollments(now: () => number = () => performance.now()): ExpectedEnrollments {
  const expectedAt = new Map<string, number>()
  return {
    add(id) {
      expectedAt.set(id, now())
      if (expectedAt.size <= MAX_IDS) return
      const [oldest = ''] = expectedAt.keys()
      expectedAt.delete(oldest)
    },
    remove: (id) => void expectedAt.delete(id),
    has: (id) => now() - (expectedAt.get(id) ?? Number.NEGATIVE_INFINITY) < EXPECTED_MS,
  }
}
