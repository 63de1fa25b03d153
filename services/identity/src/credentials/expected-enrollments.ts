const MAX_IDS = 10_000

/** The enrollments that this replica expects. Forgetting one costs a transaction without effect. */
export interface ExpectedEnrollments {
  add(id: string): void
  has(id: string): boolean
}

export function expectedEnrollments(): ExpectedEnrollments {
  const ids = new Set<string>()
  return {
    add(id) {
      ids.add(id)
      if (ids.size <= MAX_IDS) return
      const [oldest = ''] = ids
      ids.delete(oldest)
    },
    has: (id) => ids.has(id),
  }
}
