import { metrics } from '../process/metrics.js'
import { isAway } from './database-failure.js'

/** When the wait for changes of a schema is over in vain, the answer comes from what there is, and that is counted. */
export async function bestEffort(schema: string, wait: Promise<unknown>): Promise<void> {
  try {
    await wait
  } catch (err) {
    if (!isAway(err)) throw err
    metrics.waitExpired.inc({ schema })
  }
}
