import { setTimeout as delay } from 'node:timers/promises'

/** Pauses between attempts: each is twice as long as the one before, up to a limit. */
export interface Backoff {
  nextMs(): number
  /** True until the first pause after the start or the last `reset`. */
  isReset(): boolean
  /** Waits for the next pause, or until the signal is aborted. */
  pause(signal: AbortSignal): Promise<void>
  /** An attempt has succeeded: the next pause is the first again. */
  reset(): void
}

export interface BackoffOptions {
  readonly firstMs: number
  readonly longestMs: number
}

export function openBackoff({ firstMs, longestMs }: BackoffOptions): Backoff {
  let pauses = 0
  const nextMs = (): number => Math.min(firstMs * 2 ** pauses, longestMs)
  return {
    nextMs,
    isReset: () => pauses === 0,
    async pause(signal) {
      const ms = nextMs()
      pauses++
      await delay(ms, undefined, { signal }).catch(() => undefined) // aborted
    },
    reset() {
      pauses = 0
    },
  }
}
