import type { Fault } from './fault.js'

/** A call that waits for its answer. */
export interface Pending {
  readonly tag: number
  readonly bytes: Buffer
  resolve(response: Buffer): void
  reject(fault: Fault): void
  /** Rejects, and cancels the call at the replica. */
  cancel(fault: Fault): void
}

/** The pending calls of one wire, by their tags. */
export interface PendingCalls {
  /** Whether a call with this tag can be added. Tags that follow each other can, up to `MAX_PENDING` calls. */
  isFree(tag: number): boolean
  add(call: Pending): void
  get(tag: number): Pending | undefined
  delete(tag: number): void
  count(): number
  /** In the order of their tags. */
  all(): readonly Pending[]
}

/** More calls would time out while they wait. */
export const MAX_PENDING = 1000

/** A power of two above `MAX_PENDING`. */
const SLOTS = 1024

/** In slots, not in a Map: see `List`. */
export function openPendingCalls(): PendingCalls {
  const slots: (Pending | undefined)[] = new Array(SLOTS).fill(undefined)
  let count = 0
  const slotOf = (tag: number): number => tag & (SLOTS - 1)
  const get = (tag: number): Pending | undefined => {
    const call = slots[slotOf(tag)]
    return call?.tag === tag ? call : undefined
  }
  return {
    isFree: (tag) => slots[slotOf(tag)] === undefined,
    add(call) {
      slots[slotOf(call.tag)] = call
      count++
    },
    get,
    delete(tag) {
      if (!get(tag)) return
      slots[slotOf(tag)] = undefined
      count--
    },
    count: () => count,
    all: () => slots.filter((call) => call !== undefined).sort((a, b) => a.tag - b.tag),
  }
}
