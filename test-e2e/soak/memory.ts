/** The memory of all processes at the ends of rounds. */
export interface Memory {
  add(at: number, mib: number): void
  /** Medians of the first and of the last quarter of the time, in MiB. Not a number: a quarter without a sample. */
  compared(): { readonly first: number; readonly last: number }
}

/**
 * Single samples differ by more than a tenth, since the processes that faults have restarted are smaller.
 *
 * @param from when the processes have settled, as `performance.now()` counts
 */
export function openMemory(from: number, until: number): Memory {
  const quarterMs = (until - from) / 4
  const first: number[] = []
  const last: number[] = []
  return {
    add(at, mib) {
      if (at >= from && at < from + quarterMs) first.push(mib)
      else if (at >= until - quarterMs) last.push(mib)
    },
    compared: () => ({ first: median(first), last: median(last) }),
  }
}

function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
