import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { authQueriesOf } from '../domain/auth-queries.js'
import { sessionById } from '../store/api-sessions.js'
import type { Deps } from './deps.js'

/** Answers a position of the change log at which the session exists and is fully authenticated. */
export const checkApiSession =
  ({ changeLog, lifetimes }: Deps): Methods<IdentityServiceService>['checkApiSession'] =>
  async ({ id }) => {
    const session = await sessionById(changeLog.db, id, lifetimes.lifetimeSeconds)
    if (!session || authQueriesOf(session, session.demands).length > 0) throw new Fault('UNAUTHORIZED')
    return { position: { timeline: session.timeline, number: session.number } }
  }
