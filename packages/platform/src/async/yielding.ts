import { setImmediate } from 'node:timers/promises'

const SLICE_MS = 5

/** For long work in small steps: to be awaited after each of them, it lets the process do other things now and then. */
export function yielder(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < SLICE_MS) return undefined
    return setImmediate().then(() => {
      since = performance.now()
    })
  }
}
