import { metrics } from '@overlay/process'
import { CREDENTIALS_PUSHED, type CredentialsPushed, type Position } from '@overlay/rpc'
import type { Bus } from '@overlay/store/change-log'
import { PUSH_MS, RECEIVER_SILENCE_MS } from '../limits.js'

/** The replicas of sessions that have routers, and how far they have pushed. */
export interface Receivers extends Disposable {
  any(): boolean
  /** No replica has reported within `RECEIVER_SILENCE_MS`. */
  none(): boolean
  /** Until all of them have pushed the changes up to the position, a second at the most. */
  wait(position: Position): Promise<void>
}

interface Receiver {
  readonly pushed: Position
  readonly heardAt: number
  /** A caller has waited for it in vain: no caller waits for it before its next report. */
  hasTimedOut: boolean
}

export function openReceivers(bus: Pick<Bus, 'subscribe'>): Receivers {
  const receivers = new Map<string, Receiver>()
  const waiters = new Set<() => void>()

  const reports = bus.subscribe(CREDENTIALS_PUSHED, (message) => {
    const { replica, position, routers } = message as CredentialsPushed
    if (routers === 0) receivers.delete(replica)
    else receivers.set(replica, { pushed: position, heardAt: performance.now(), hasTimedOut: false })
    for (const check of waiters) check()
  })

  function heard(): Receiver[] {
    const since = performance.now() - RECEIVER_SILENCE_MS
    for (const [replica, { heardAt }] of receivers) if (heardAt < since) receivers.delete(replica)
    return [...receivers.values()]
  }
  const live = (): Receiver[] => heard().filter(({ hasTimedOut }) => !hasTimedOut)
  const behind = ({ timeline, number }: Position): Receiver[] =>
    live().filter(({ pushed }) => pushed.timeline !== timeline || pushed.number < number)

  return {
    any: () => live().length > 0,
    none: () => heard().length === 0,
    wait: (position) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (behind(position).length === 0) end()
        }
        const end = (): void => {
          clearTimeout(timer)
          waiters.delete(check)
          resolve()
        }
        const timer = setTimeout(() => {
          for (const receiver of behind(position)) receiver.hasTimedOut = true
          metrics.pushLate.inc()
          end()
        }, PUSH_MS)
        waiters.add(check)
        check()
      }),
    [Symbol.dispose]() {
      reports[Symbol.dispose]()
      for (const check of waiters) check()
    },
  }
}
