import type { Bus } from '../change-log/bus.js'
import type { ChangeLog } from '../change-log/change-log.js'
import type { Projection } from '../change-log/projection.js'
import type { Health } from '../process/ops.js'

/** A service is ready while its database answers. Without the bus it is slower. */
export const healthOf =
  (changeLog: ChangeLog, bus: Pick<Bus, 'connected'>, followed: readonly Projection[] = []) =>
  async (): Promise<Health> => {
    const database = await changeLog.head().then(
      () => 'ok',
      () => 'does not answer',
    )
    const checks = {
      database,
      bus: bus.connected() ? 'ok' : 'away',
      ...Object.fromEntries(
        followed.map((projection) => [projection.schema, projection.isFresh() ? 'ok' : 'not heard']),
      ),
    }
    return { ready: database === 'ok', checks }
  }
