import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const CHECK_MS = 10_000
/** Processor time within that time of a process that has nothing to do. */
const REST_MS = 300
const LEAST_FREE_BYTES = 4 * 1024 * 1024
/** A collection stops the process for up to 1 ms for each MiB in use. */
const MOST_USED_BYTES = 48 * 1024 * 1024

/**
 * Collects garbage once after each burst of work. V8 gives memory back only as part of a collection, and a process
 * without work has none: it would keep the largest young generation that it ever had.
 * @param mostUsedBytes heap in use from which a collection would take too long
 */
export function releaseMemoryAtRest(mostUsedBytes = MOST_USED_BYTES): Disposable {
  let [before, hasWorked] = [process.cpuUsage(), true]
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(before)
    before = process.cpuUsage()
    const isAtRest = (user + system) / 1000 < REST_MS
    const { heapUsed, heapTotal } = process.memoryUsage()
    if (isAtRest && hasWorked && heapUsed < mostUsedBytes && heapTotal - heapUsed > LEAST_FREE_BYTES)
      collect()
    hasWorked = !isAtRest
  }, CHECK_MS)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/** V8 binds the function to contexts that are created while the flag is set. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  collectGarbage()
}
