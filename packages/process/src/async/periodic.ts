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
