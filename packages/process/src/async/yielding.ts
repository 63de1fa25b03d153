import { setImmediate } from 'node:timers/promises'

const SLICE_MS = 5

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
