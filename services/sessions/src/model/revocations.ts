import type { ModelEvent } from '@overlay/channel'
import { runPeriodically } from '@overlay/process/async'
import type { RevocationListener } from '../access/access-concern.js'
import type { ApiSessions } from '../access/api-sessions.js'
import { FEW_REVOCATIONS, REVOCATION_EXPIRY_MS } from '../limits.js'
import { encodeOwn, joinOwn, type OwnEvents, revocationEvent, withdrawnRevocation } from './encode-model.js'

/**
 * The revocations in the data model: of API sessions, which every access token names. An identity that is disabled or
 * deleted loses all of its API sessions.
 */
export interface ModelRevocations extends AsyncDisposable {
  /** Encoded once for all routers: anyone who logs in and out makes more of them. */
  all(): OwnEvents
}

/** @param changed gets the changes of one turn of the event loop together */
export function openRevocations(
  { apiSessions, onRevocations }: AccessRevocations,
  changed: (events: readonly ModelEvent[]) => void,
): ModelRevocations {
  const announced = new Map<string, number>() // with their ends
  const encoded = openEncoded(() => [...announced].map(([id, untilMs]) => revocationEvent(id, { untilMs })))
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
    const event = revocationEvent(id, revocation)
    encoded.add(event)
    gather(event)
  }
  function reinstated(id: string): void {
    if (!announced.delete(id)) return
    encoded.drop()
    gather(withdrawnRevocation(id))
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
    all: encoded.all,
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

/** Events in encoded form. Those that are added later are encoded apart, until there are many of them. */
function openEncoded(read: () => readonly ModelEvent[]) {
  let former: { readonly own: OwnEvents; readonly count: number } | undefined
  let added: ModelEvent[] = []
  let later: OwnEvents | undefined
  return {
    add(event: ModelEvent): void {
      if (!former) return
      later = undefined
      added.push(event)
      if (added.length > Math.max(FEW_REVOCATIONS, former.count / 8)) former = undefined
    },
    drop(): void {
      former = undefined
    },
    all(): OwnEvents {
      if (!former) {
        const events = read()
        former = { own: encodeOwn(events), count: events.length }
        added = []
        later = undefined
      }
      later ??= encodeOwn(added)
      return joinOwn(former.own, later)
    },
  }
}
