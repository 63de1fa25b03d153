import { performance } from 'node:perf_hooks'
import { metrics } from '@overlay/process'
import { retryAfter } from '@overlay/rpc'
import { MAX_WINDOWS, MIN_SHARE, SATURATED_SHARE, WINDOW_MS } from '../limits.js'

export interface ShareLimits {
  /** Requests in a second of one source; 0: no limit but the fair share. */
  readonly requestsPerSource: number
  /** The same for one API session. */
  readonly requestsPerSession: number
}

/** What limits the requests of sources, and of API sessions. */
export interface Shares {
  /**
   * Counts a request of a source, as of `sourceOf`.
   * @returns undefined: it may run; otherwise it may when this resolves. @throws Fault SERVER_TOO_MANY_REQUESTS
   */
  takeSource(source: string): Promise<void> | undefined
  /** The same for an API session, by its id. */
  takeSession(id: string): Promise<void> | undefined
}

/** Time, for tests. */
export interface ShareClock {
  /** Calls `turn` when a window is over. */
  after(turn: () => void): void
  /** Share of the time since the last call in which the event loop had work. */
  utilization(): number
}

/**
 * While the event loop has time to spare, only the limits of the settings hold. When it has none, a source may have
 * twice the mean of all sources, and a session twice the mean of all sessions. What is more waits for the next windows,
 * in order, and is refused if it had to wait for longer than three. Clients that wait for their answers are thus slowed
 * down rather than refused, and one that floods the gateway leaves the rest to others.
 */
export function openShares(limits: ShareLimits, clock: ShareClock = realClock()): Shares {
  const sources = openGroup('source', limits.requestsPerSource)
  const sessions = openGroup('session', limits.requestsPerSession)
  let isCounting = false

  function turn(): void {
    const isSaturated = clock.utilization() > SATURATED_SHARE
    const isIdle = sources.turn(isSaturated)
    isCounting = !(sessions.turn(isSaturated) && isIdle)
    if (isCounting) clock.after(turn)
  }
  const counting =
    (group: Group) =>
    (key: string): Promise<void> | undefined => {
      if (!isCounting) {
        isCounting = true
        clock.utilization()
        clock.after(turn)
      }
      return group.take(key)
    }
  return { takeSource: counting(sources), takeSession: counting(sessions) }
}

interface Account {
  /** Requests of the window that run or have run. */
  taken: number
  /** Those that wait for later windows, in order. */
  readonly waiting: (() => void)[]
}

interface Group {
  take(key: string): Promise<void> | undefined
  /** Begins a window. Returns true if there is nothing to count. */
  turn(isSaturated: boolean): boolean
}

function openGroup(by: 'source' | 'session', most: number): Group {
  const highest = most || Number.POSITIVE_INFINITY
  /** Those with requests in this window. */
  const accounts = new Map<string, Account>()
  let fair = Number.POSITIVE_INFINITY
  let share = highest

  function accountOf(key: string): Account {
    const known = accounts.get(key)
    if (known) return known
    const account = { taken: 0, waiting: [] }
    accounts.set(key, account)
    return account
  }
  /** Demand beyond a share does not show in what was taken, so shares grow step by step while requests wait. */
  function nextFair(isSaturated: boolean, isWaiting: boolean): number {
    if (isSaturated && accounts.size > 1) {
      let taken = 0
      for (const account of accounts.values()) taken += account.taken
      return Math.max(MIN_SHARE, Math.ceil((2 * taken) / accounts.size))
    }
    return isWaiting ? 2 * fair : Number.POSITIVE_INFINITY
  }
  return {
    take(key) {
      const account = accountOf(key)
      const { waiting } = account
      if (account.taken < share && waiting.length === 0) {
        account.taken++
        return undefined
      }
      const windows = Math.ceil((waiting.length + 1) / share)
      const isRefused = windows > MAX_WINDOWS
      metrics.requestsHeld.inc({ by, outcome: isRefused ? 'refused' : 'waited' })
      if (isRefused) throw retryAfter(windows)
      return new Promise((resolve) => waiting.push(resolve))
    },
    turn(isSaturated) {
      const queued = [...accounts].filter(([, { waiting }]) => waiting.length > 0)
      const isIdle = accounts.size === 0
      fair = nextFair(isSaturated, queued.length > 0)
      share = Math.min(highest, fair)
      accounts.clear()
      for (const [key, { waiting }] of queued) {
        const next = waiting.splice(0, Math.min(share, waiting.length))
        accounts.set(key, { taken: next.length, waiting })
        for (const run of next) run()
      }
      return isIdle
    },
  }
}

function realClock(): ShareClock {
  let before = performance.eventLoopUtilization()
  return {
    after: (turn) => void setTimeout(turn, WINDOW_MS).unref(), // the connections keep the process alive
    utilization() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, before)
      before = now
      return utilization
    },
  }
}
