/** The times in which an acknowledged write may be lost, since the standby no longer receives changes. */
export interface Losses {
  /** Acknowledged writes may be lost from now on. */
  begin(): void
  /** The standby is the primary. Writes are kept again, and those since `begin` are lost. */
  end(): void
  /** The primary goes on, and nothing is lost. */
  cancel(): void
  /** How many times writes have been lost. */
  count(): number
  /** Returns whether a write that begins now may be lost, once its answer is here. */
  watch(): () => boolean
}

export function openLosses(): Losses {
  let isOpen = false
  let count = 0
  return {
    begin() {
      isOpen = true
    },
    end() {
      isOpen = false
      count++
    },
    cancel() {
      isOpen = false
    },
    count: () => count,
    watch() {
      const [wasOpen, before] = [isOpen, count]
      return () => wasOpen || isOpen || count !== before
    },
  }
}
