import type { RefusedRequest, SlowRequest } from '@overlay/rpc'
import { RECENT_CHARACTERS, RECENT_ITEMS, SLOW_SECONDS } from './limits.js'
import { printable } from './printable.js'

/** The newest items of a kind. Older ones are dropped. */
export interface Recent<T> {
  add(item: T): void
  newestFirst(): readonly T[]
}

export function openRecent<T>(most: number): Recent<T> {
  const items: T[] = []
  let next = 0 // the oldest one, when all places are taken
  return {
    add(item) {
      items[next] = item
      next = (next + 1) % most
    },
    newestFirst: () => [...items.slice(next), ...items.slice(0, next)].reverse(),
  }
}

interface Refusal {
  readonly atMs: number
  readonly message: string
  readonly facts: object
}

const slow = openRecent<SlowRequest>(RECENT_ITEMS)
const refused = openRecent<Refusal>(RECENT_ITEMS)

export const isSlow = (seconds: number): boolean => seconds >= SLOW_SECONDS

/** Keeps a slow request or call for the status page. */
export function keepSlow(operation: string, result: string, seconds: number, requestId: string): void {
  slow.add({ atMs: Date.now(), operation, durationMs: Math.round(seconds * 1000), result, requestId })
}

/** Keeps a refusal for the status page. Takes the fields of its log line. */
export const keepRefusal = (message: string, facts: object): void =>
  refused.add({ atMs: Date.now(), message, facts })

export const recentSlowRequests = (): SlowRequest[] => [...slow.newestFirst()]

export const recentRefusals = (): RefusedRequest[] =>
  refused.newestFirst().map(({ atMs, message, facts }) => {
    const { reason = '', sourceAddress = '', ...more } = textsOf(facts)
    return { atMs, message, reason, sourceAddress, facts: more }
  })

/** Without the user name as typed, which may be a password. */
const textsOf = (facts: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(facts).flatMap(([name, value]: [string, unknown]) =>
      name === 'username' || (typeof value !== 'string' && typeof value !== 'number')
        ? []
        : [[name, printable(String(value), RECENT_CHARACTERS)]],
    ),
  )
