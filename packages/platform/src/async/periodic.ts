/** Calls `work` every so many milliseconds, until disposed. */
export type Timer = (everyMs: number, work: () => void) => Disposable

/** Runs work periodically, never twice at once, until disposed. The work must handle its failures. */
export function runPeriodically(
  everyMs: number,
  work: (signal: AbortSignal) => Promise<unknown>,
  timer: Timer = interval,
): AsyncDisposable {
  const stop = new AbortController()
  let running: Promise<unknown> | undefined
  const ticking = timer(everyMs, () => {
    running ??= work(stop.signal).finally(() => {
      running = undefined
    })
  })
  return {
    async [Symbol.asyncDispose]() {
      ticking[Symbol.dispose]()
      stop.abort()
      await running
    },
  }
}

const interval: Timer = (everyMs, work) => {
  const timer = setInterval(work, everyMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/**
 * A timer that ticks together with all others of the process that have its period or a multiple of it: a process at rest
 * wakes up once for all. Not for statements that need a connection of their own: each would need another one.
 */
export const tick: Timer = (everyMs, work) => {
  let timer: NodeJS.Timeout
  const next = (): void => {
    const now = performance.now()
    const due = Math.round(now / everyMs + 1) * everyMs // the first one after a half to one and a half periods
    timer = setTimeout(run, Math.ceil(due - now))
  }
  const run = (): void => {
    next()
    work()
  }
  next()
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}
