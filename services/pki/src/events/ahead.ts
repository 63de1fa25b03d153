const MOST = 10_000

/**
 * What has been done here already by the time that a change says it. To forget costs a transaction without any effect,
 * nothing else.
 */
export interface Ahead {
  has(enrollmentId: string): boolean
  add(enrollmentId: string): void
}

export function openAhead(): Ahead {
  const ids = new Set<string>()
  return {
    has: (id) => ids.has(id),
    add(id) {
      ids.add(id)
      if (ids.size > MOST) for (const oldest of [...ids].slice(0, MOST / 2)) ids.delete(oldest)
    },
  }
}
