/** Does the work each so many milliseconds, never twice at once, until disposed. It handles its failures itself. */
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
