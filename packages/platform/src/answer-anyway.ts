import { Fault } from '@overlay/rpc'
import { metrics } from './metrics.js'

/** For lists: when the wait for changes of a schema is over in vain they answer from what there is, and count it. */
export async function answerAnyway(schema: string, wait: Promise<void>): Promise<void> {
  try {
    await wait
  } catch (err) {
    if (!(err instanceof Fault) || err.code !== 'TIMEOUT') throw err
    metrics.waitExpired.inc({ schema })
  }
}
