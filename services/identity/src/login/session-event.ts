import { apiSession } from '@overlay/model'
import type { FabricEvent, FabricEvents, RowChange } from '@overlay/store/change-log'

interface NamedSession {
  readonly id: string
  readonly identityId: string
  readonly ipAddress: string
}

/** differs: without the token, which is a credential. */
export const apiSessionEvent = (
  type: 'created' | 'deleted',
  { id, identityId, ipAddress }: NamedSession,
): FabricEvent => ({
  namespace: 'edge.apiSessions',
  event_type: type,
  id,
  token: '',
  identity_id: identityId,
  ip_address: ipAddress,
})

/** Emits the API sessions that a write has ended. */
export function emitEnded(events: FabricEvents, changes: readonly RowChange[]): void {
  for (const { kind, id, before, after } of changes)
    if (kind === apiSession.kind && before && !after)
      events.emit(apiSessionEvent('deleted', { ...(before as Omit<NamedSession, 'id'>), id }))
}
