import { session } from '@overlay/model'
import type { FabricEvent, FabricEvents, RowChange } from '@overlay/store/change-log'
import type { EndedSession } from '../domain/session-access.js'

/** differs: without the token, which is a credential. */
export const sessionEvent = (
  type: 'created' | 'deleted',
  { id, type: sessionType, apiSessionId, identityId, serviceId }: EndedSession,
): FabricEvent => ({
  namespace: 'edge.sessions',
  event_type: type,
  session_type: sessionType,
  id,
  token: '',
  api_session_id: apiSessionId,
  identity_id: identityId,
  service_id: serviceId,
})

/** Emits the sessions that a write has ended. */
export function emitEnded(events: FabricEvents, changes: readonly RowChange[]): void {
  for (const { kind, id, before, after } of changes)
    if (kind === session.kind && before && !after)
      events.emit(sessionEvent('deleted', { ...(before as Omit<EndedSession, 'id'>), id }))
}
