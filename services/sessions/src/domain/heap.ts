/** Numbers in the order of their costs. A number may be in it several times. */
export interface Heap {
  push(cost: number, value: number): void
  /** Removes the value with the least cost. Undefined: the heap is empty. */
  pop(): number | undefined
}

/** A binary heap. */
export function openHeap(): Heap {
  const costs: number[] = []
  const values: number[] = []

  function place(at: number, cost: number, value: number): void {
    costs[at] = cost
    values[at] = value
  }
  const costAt = (at: number): number => costs[at] ?? Infinity
  const valueAt = (at: number): number => values[at] ?? 0

  return {
    push(cost, value) {
      let at = costs.length
      while (at > 0) {
        const parent = (at - 1) >> 1
        if (costAt(parent) <= cost) break
        place(at, costAt(parent), valueAt(parent))
        at = parent
      }
      place(at, cost, value)
    },

    pop() {
      const least = values[0]
      const cost = costs.pop()
      const value = values.pop()
      if (cost === undefined || value === undefined || costs.length === 0) return least
      let at = 0
      for (;;) {
        let child = 2 * at + 1
        if (child >= costs.length) break
        if (costAt(child + 1) < costAt(child)) child++
        if (cost <= costAt(child)) break
        place(at, costAt(child), valueAt(child))
        at = child
      }
      place(at, cost, value)
      return least
    },
  }
}
