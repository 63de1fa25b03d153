import type { Health } from '@overlay/process'
import { openLimit, untilAborted } from '@overlay/process/async'
import type { Bus, ChangeLog } from '@overlay/store/change-log'
import { DATABASE_CHECK_MS } from './limits.js'

/** A service is ready while its database answers. Without the bus it is slower. */
export const healthOf =
  (changeLog: Pick<ChangeLog, 'head'>, bus: Pick<Bus, 'connected'>) => async (): Promise<Health> => {
    using limit = openLimit(DATABASE_CHECK_MS)
    const database = await Promise.race([changeLog.head(), untilAborted(limit.signal)]).then(
      () => 'ok',
      () => 'does not answer',
    )
    return { ready: database === 'ok', checks: { database, bus: bus.connected() ? 'ok' : 'unavailable' } }
  }
