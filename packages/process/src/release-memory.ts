import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MAX_OLD_BYTES, REST_CHECK_MS, REST_CPU_MS } from './limits.js'

/**
 * Collects garbage once after each burst of work. V8 gives memory back only as part of a collection, and a process
 * without work has none: it would keep the largest young generation that it ever had.
 * @param mostOldBytes objects outside of the young generation from which a collection would take too long
 */
export function releaseMemoryAtRest(mostOldBytes = MAX_OLD_BYTES): Disposable {
  let [before, hasWorked] = [process.cpuUsage(), true]
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(before)
    before = process.cpuUsage()
    const isAtRest = (user + system) / 1000 < REST_CPU_MS
    if (isAtRest && hasWorked && oldBytes() < mostOldBytes) collect()
    hasWorked = !isAtRest
  }, REST_CHECK_MS)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

const oldBytes = (): number =>
  getHeapSpaceStatistics()
    .filter(({ space_name }) => !space_name.startsWith('new_'))
    .reduce((sum, { space_used_size }) => sum + space_used_size, 0)

/** V8 binds the function to contexts that are created while the flag is set. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  collectGarbage()
}
