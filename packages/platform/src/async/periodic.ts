/** Runs work periodically, never twice at once, until disposed. The work must handle its failures. */
export function runPeriodically(
  everyMs: number,
  work: (signal: AbortSignal) => Promise<unknown>,
): AsyncDisposable {
  const stop = new AbortController()
  let running: Promise<unknown> | undefined
  const timer = setInterval(() => {
    running ??= work(stop.signal).finally(() => {
      running = undefined
    })
  }, everyMs)
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      stop.abort()
      await running
    },
  }
}

/**
 * Calls `work` about every so many milliseconds, until disposed. All ticks of the process with one period, and with
 * multiples of it, come at the same time: a process at rest wakes up once for all of them. Statements that begin together
 * need a connection each, so jobs run by themselves.
 */
export function tick(everyMs: number, work: () => void): Disposable {
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
