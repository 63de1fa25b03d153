import type { Bus } from '../change-log/bus.js'
import type { ChangeLog } from '../change-log/change-log.js'
import type { Health } from '../process/ops.js'

/** A service is ready while its database answers. Without the bus it is slower. */
export const healthOf = (changeLog: ChangeLog, bus: Pick<Bus, 'connected'>) => async (): Promise<Health> => {
  const database = await changeLog.head().then(
    () => 'ok',
    () => 'does not answer',
  )
  return { ready: database === 'ok', checks: { database, bus: bus.connected() ? 'ok' : 'away' } }
}
