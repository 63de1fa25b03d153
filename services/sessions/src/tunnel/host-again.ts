import type { Db } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { AccessRefused } from '../domain/router-access.js'
import type { RouterFeatures } from '../domain/router-features.js'
import { type NewTerminator, terminatorsOfSessions } from '../store/router-terminator.js'
import type { Terminators } from '../terminators/terminators-concern.js'
import type { TunnelDeps } from './tunnel-deps.js'

export interface HostAgainDeps extends Pick<TunnelDeps, 'routerSessions' | 'session'> {
  readonly changeLog: { readonly db: Db }
  readonly presence: {
    of(routerId: string): readonly { readonly features: Pick<RouterFeatures, 'hasDataModel'> }[]
  }
  readonly terminators: Pick<Terminators, 'create' | 'endOfSessions'>
  readonly log: Logger
}

/** Routers host services themselves with these. */
export const TUNNEL_BINDING = 'tunnel'

/**
 * Ends terminators with their sessions, and creates those of tunnelers again whose router may still host: an end of the
 * API session takes no right from it. wire: tunnelers with the data model do not learn that their session has ended.
 */
export function endOrHostAgain(deps: HostAgainDeps): Terminators['endOfSessions'] {
  const { changeLog, presence, routerSessions, session, terminators, log } = deps
  const isUnaware = ({ routerId }: NewTerminator): boolean =>
    presence.of(routerId).some(({ features }) => features.hasDataModel)

  async function hostAgain(terminator: NewTerminator): Promise<void> {
    const { routerId, serviceId } = terminator
    try {
      const router = await routerSessions.ofId(routerId)
      const { id: sessionId } = await session(router, serviceId, 'Bind')
      await terminators.create({ ...terminator, sessionId })
    } catch (err) {
      if (!(err instanceof AccessRefused))
        log.warn({ err, routerId, serviceId }, 'a tunneler hosts no longer: its session has ended')
    }
  }
  async function hostAllAgain(ended: readonly NewTerminator[]): Promise<void> {
    for (const terminator of ended) await hostAgain(terminator)
  }
  return async (sessionIds) => {
    const ended = await terminatorsOfSessions(changeLog.db, sessionIds, TUNNEL_BINDING)
    await terminators.endOfSessions(sessionIds)
    void hostAllAgain(ended.filter(isUnaware)) // ends of other sessions must not wait for it
  }
}
