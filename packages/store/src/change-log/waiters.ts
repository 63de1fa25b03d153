import { Fault, onAbort, type Position } from '@overlay/rpc'

/** The callers that wait for a follower. */
export interface Waiters {
  /** Until the follower is at the position; without one, at all that its owner had at the call. */
  wait(position: Position | undefined, signal: AbortSignal): Promise<void>
  any(): boolean
  /** True when a caller still waits that came before this pull began. */
  anySince(pull: number): boolean
  /** A pull from the owner begins. Returns its number. */
  beginPull(): number
  /** The pull has ended, and all that it found is applied. */
  endPull(pull: number): void
  /** Ends the waits that are over. To be called when the follower has moved. */
  check(): void
}

interface Waiter {
  readonly position: Position | undefined
  readonly since: number // pulls that had begun before it came do not serve it
  readonly resolve: () => void
}

export function openWaiters(applied: () => Position | undefined): Waiters {
  const waiters = new Set<Waiter>()
  let begun = 0
  let ended = 0

  const isMet = ({ position, since }: Omit<Waiter, 'resolve'>): boolean => {
    const at = applied()
    // a position of another timeline is an older one: the head of the newer timeline meets it
    return at !== undefined && position?.timeline === at.timeline
      ? at.number >= position.number
      : ended > since
  }
  const check = (): void => {
    for (const waiter of [...waiters]) if (isMet(waiter)) waiter.resolve()
  }

  async function wait(position: Position | undefined, signal: AbortSignal): Promise<void> {
    if (isMet({ position, since: begun })) return
    if (signal.aborted) throw new Fault('TIMEOUT', undefined, signal.reason)
    await new Promise<void>((resolve, reject) => {
      const waiter = {
        position,
        since: begun,
        resolve() {
          waiters.delete(waiter)
          removeListener()
          resolve()
        },
      }
      const abort = (): void => {
        waiters.delete(waiter)
        reject(new Fault('TIMEOUT', undefined, signal.reason))
      }
      waiters.add(waiter)
      const removeListener = onAbort(signal, abort) // a signal may be that of many waits
    })
  }

  return {
    wait,
    any: () => waiters.size > 0,
    anySince: (pull) => [...waiters].some(({ since }) => since < pull),
    beginPull: () => ++begun,
    endPull(pull) {
      ended = Math.max(ended, pull)
      check()
    },
    check,
  }
}
