import { Fault, type Position } from '@overlay/rpc'

/** Who waits for a follower. */
export interface Waiting {
  /** Until it has reached the position; without one, all that its owner had when this was called. */
  wait(position: Position | undefined, signal: AbortSignal): Promise<void>
  any(): boolean
  /** Somebody still waits who was there before the look `turn` began. */
  anySince(turn: number): boolean
  /** A look at the owner begins; its number. */
  begin(): number
  /** That look is over, and all that it found is applied. */
  end(turn: number): void
  /** The follower has moved. */
  settle(): void
}

interface Waiter {
  readonly position: Position | undefined
  readonly since: number // looks that had begun when it came are too old for it
  readonly done: () => void
}

export function openWaiting(applied: () => Position | undefined): Waiting {
  const waiters = new Set<Waiter>()
  let begun = 0
  let ended = 0

  const isMet = ({ position, since }: Omit<Waiter, 'done'>): boolean => {
    const at = applied()
    // a position of another timeline is an older one: the head of the newer meets it
    return at !== undefined && position?.timeline === at.timeline
      ? at.number >= position.number
      : ended > since
  }
  const settle = (): void => {
    for (const waiter of waiters) if (isMet(waiter)) waiter.done()
  }
  return {
    async wait(position, signal) {
      if (isMet({ position, since: begun })) return
      if (signal.aborted) throw new Fault('TIMEOUT', undefined, signal.reason)
      await new Promise<void>((resolve, reject) => {
        const waiter = {
          position,
          since: begun,
          done() {
            waiters.delete(waiter)
            signal.removeEventListener('abort', late)
            resolve()
          },
        }
        const late = (): void => {
          waiters.delete(waiter)
          reject(new Fault('TIMEOUT', undefined, signal.reason))
        }
        waiters.add(waiter)
        signal.addEventListener('abort', late, { once: true })
      })
    },
    any: () => waiters.size > 0,
    anySince: (turn) => [...waiters].some(({ since }) => since < turn),
    begin: () => ++begun,
    end(turn) {
      ended = Math.max(ended, turn)
      settle()
    },
    settle,
  }
}
