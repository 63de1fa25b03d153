import { openLimit, untilAborted } from '../async/limit.js'
import type { Bus } from '../change-log/bus.js'
import type { ChangeLog } from '../change-log/change-log.js'
import type { Health } from '../process/ops.js'

/** Shorter than any probe waits: a database that hangs must not look like a process that does. */
const DATABASE_MS = 1200

/** A service is ready while its database answers. Without the bus it is slower. */
export const healthOf =
  (changeLog: Pick<ChangeLog, 'head'>, bus: Pick<Bus, 'connected'>) => async (): Promise<Health> => {
    using limit = openLimit(DATABASE_MS)
    const database = await Promise.race([changeLog.head(), untilAborted(limit.signal)]).then(
      () => 'ok',
      () => 'does not answer',
    )
    return { ready: database === 'ok', checks: { database, bus: bus.connected() ? 'ok' : 'away' } }
  }
