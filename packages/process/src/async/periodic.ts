import { setImmediate } from 'node:timers/promises'
import { SLICE_MS } from '../limits.js'

/** For long work in small steps: await it after each step, and the process can do other work in between. */
export function yielder(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < SLICE_MS) return undefined
    return setImmediate().then(() => {
      since = performance.now()
    })
  }
}

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
