import { metrics } from '@overlay/process'
import { isAway } from './database-failure.js'

/** Waits for changes of a schema. If the owner is unavailable or late, counts that and returns: answers are then older. */
export async function bestEffort(schema: string, wait: Promise<unknown>): Promise<void> {
  try {
    await wait
  } catch (err) {
    if (!isAway(err)) throw err
    metrics.waitExpired.inc({ schema })
  }
}
