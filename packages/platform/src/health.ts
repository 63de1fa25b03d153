import type { Bus } from './bus.js'
import type { History } from './history.js'
import type { Health } from './ops.js'
import type { Projection } from './projection.js'

/** Of a service: it can serve while its database answers; what else is away makes it slower, not useless. */
export const healthOf =
  (history: History, bus: Pick<Bus, 'connected'>, followed: readonly Projection[] = []) =>
  async (): Promise<Health> => {
    const database = await history.head().then(
      () => 'ok',
      () => 'does not answer',
    )
    const checks = {
      database,
      bus: bus.connected() ? 'ok' : 'away',
      ...Object.fromEntries(
        followed.map((projection) => [projection.schema, projection.trusted() ? 'ok' : 'not heard']),
      ),
    }
    return { ready: database === 'ok', checks }
  }
