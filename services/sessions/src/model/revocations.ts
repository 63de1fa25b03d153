import type { ModelEvent } from '@overlay/channel'
import { runPeriodically } from '@overlay/process/async'
import type { RevocationListener } from '../access/access-concern.js'
import type { ApiSessions } from '../access/api-sessions.js'
import { REVOCATION_EXPIRY_MS } from '../limits.js'
import { revocationEvent, withdrawnRevocation } from './encode-model.js'

/**
 * The revocations in the data model: of API sessions, which every access token names. An identity that is disabled or
 * deleted loses all of its API sessions.
 */
export interface ModelRevocations extends AsyncDisposable {
  all(): readonly ModelEvent[]
}

/** @param changed gets the changes of one turn of the event loop together */
export function openRevocations(
  { apiSessions, onRevocations }: AccessRevocations,
  changed: (events: readonly ModelEvent[]) => void,
): ModelRevocations {
  const announced = new Map<string, number>() // with their ends
  let gathered: ModelEvent[] = []
  let gathering: NodeJS.Immediate | undefined

  function gather(event: ModelEvent): void {
    gathered.push(event)
    gathering ??= setImmediate(() => {
      gathering = undefined
      const events = gathered
      gathered = []
      changed(events)
    })
  }
  const revoked: RevocationListener['revoked'] = (id, revocation) => {
    if (announced.get(id) === revocation.untilMs) return
    announced.set(id, revocation.untilMs)
    gather(revocationEvent(id, revocation))
  }
  function reinstated(id: string): void {
    if (announced.delete(id)) gather(withdrawnRevocation(id))
  }
  function compare(): void {
    const current = apiSessions.revocations()
    for (const id of announced.keys()) if (!current.has(id)) reinstated(id)
    for (const [id, revocation] of current) revoked(id, revocation)
  }
  onRevocations({ revoked, reinstated, reloaded: compare })
  const expiring = runPeriodically(REVOCATION_EXPIRY_MS, async () => compare())
  compare()

  return {
    all: () => [...apiSessions.revocations()].map(([id, revocation]) => revocationEvent(id, revocation)),
    async [Symbol.asyncDispose]() {
      clearImmediate(gathering)
      await expiring[Symbol.asyncDispose]()
    },
  }
}

export interface AccessRevocations {
  readonly apiSessions: Pick<ApiSessions, 'revocations'>
  onRevocations(listener: RevocationListener): void
}
