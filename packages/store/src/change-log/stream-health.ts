import { followers } from '@overlay/process'
import type { Position } from '@overlay/rpc'
import { SILENCE_MS } from '../limits.js'

/** How a followed stream works, and how old the state is that it brings. Metrics show it until it is disposed. */
export interface StreamHealth extends Disposable {
  /** A message has arrived. */
  hear(): void
  /** The state contains all that its owner had at this time, as of `performance.now()`. */
  refresh(at: number): void
  /** The state is not complete any more. */
  expire(): void
  /** True while messages arrive. */
  isHeard(): boolean
  /** The time since the state was complete. Infinity: it never was. */
  ageMs(): number
}

export function openStreamHealth(schema: string, position: () => Position | undefined): StreamHealth {
  let freshAt = Number.NEGATIVE_INFINITY
  let heardAt = Number.NEGATIVE_INFINITY
  const silentMs = (): number => performance.now() - heardAt
  const described = { schema, number: () => position()?.number, silentMs }
  followers.add(described)
  return {
    hear() {
      heardAt = performance.now()
    },
    refresh(at) {
      freshAt = Math.max(freshAt, at)
    },
    expire() {
      freshAt = Number.NEGATIVE_INFINITY
    },
    isHeard: () => silentMs() < SILENCE_MS,
    ageMs: () => performance.now() - freshAt,
    [Symbol.dispose]: () => void followers.delete(described),
  }
}
