/** Whether something is in use, to save work while it is not. */
export interface Demand {
  /** It is used now. */
  note(): void
  /** False once it has not been used for a while. */
  lasts(): boolean
}

/** It is in use at first. `begins` is called at the first use after a pause of `lastsMs`. */
export function openDemand(lastsMs: number, begins: () => void): Demand {
  let usedAt = performance.now()
  const lasts = (): boolean => performance.now() - usedAt < lastsMs
  return {
    note() {
      const hasBegun = lasts()
      usedAt = performance.now()
      if (!hasBegun) begins()
    },
    lasts,
  }
}
