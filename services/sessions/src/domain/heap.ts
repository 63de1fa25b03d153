/** A binary heap: values in the order of their costs. A value may be in it several times. */
export function openHeap<T>() {
  const entries: { readonly cost: number; readonly value: T }[] = []
  const costAt = (at: number): number => entries[at]?.cost ?? Infinity
  const swap = (a: number, b: number): void => {
    const [x, y] = [entries[a], entries[b]]
    if (x && y) [entries[a], entries[b]] = [y, x]
  }
  return {
    push(cost: number, value: T): void {
      let at = entries.push({ cost, value }) - 1
      for (let parent = (at - 1) >> 1; at > 0 && costAt(parent) > cost; parent = (at - 1) >> 1) {
        swap(at, parent)
        at = parent
      }
    },
    /** Removes the value with the least cost. Undefined: the heap is empty. */
    pop(): T | undefined {
      swap(0, entries.length - 1)
      const least = entries.pop()
      for (let at = 0; ; ) {
        const left = 2 * at + 1
        const child = costAt(left + 1) < costAt(left) ? left + 1 : left
        if (costAt(child) >= costAt(at)) return least?.value
        swap(at, child)
        at = child
      }
    },
  }
}
