const MOST = 10_000

/**
 * What requests do here before the change that says it is followed. To forget it costs a transaction without effect,
 * nothing else.
 */
export interface Ahead {
  /** Runs `work`, which says whether it has done it. */
  doing(enrollmentId: string, work: () => Promise<boolean>): Promise<boolean>
  /** Whether it has been done. What is under way is waited for, or both would do it. */
  hasDone(enrollmentId: string): boolean | Promise<boolean>
}

export function openAhead(): Ahead {
  const done = new Set<string>()
  const underWay = new Map<string, Promise<boolean>>()
  return {
    async doing(id, work) {
      const running = underWay.get(id) ?? work()
      underWay.set(id, running)
      try {
        if (!(await running)) return false
        done.add(id)
        if (done.size > MOST) for (const old of [...done].slice(0, MOST / 2)) done.delete(old)
        return true
      } finally {
        underWay.delete(id)
      }
    },
    // whoever asked for it hears why it failed
    hasDone: (id) => underWay.get(id)?.catch(() => false) ?? done.has(id),
  }
}
