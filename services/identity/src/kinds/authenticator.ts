import { authenticator, identity, type RowOf, referenceTo } from '@overlay/model'
import { type Kind, kind } from '@overlay/platform/kind-store'
import sql from 'sql-template-tag'
import { endSessions, endSessionsOf } from '../store/api-sessions.js'
import { mayHaveOneMore } from '../store/authenticators.js'
import { refuseShuttingOutWithout } from '../store/default-admin.js'
import { peopleOf } from './api-session.js'

type Row = RowOf<typeof authenticator>

export const authenticators: Kind = kind(authenticator, {
  scope: ({ isAdmin, identityId }) => (isAdmin ? sql`true` : sql`identity_id = ${identityId}`),

  async view(db, rows) {
    const people = await peopleOf(
      db,
      rows.map(({ identityId }) => identityId),
    )
    return rows.map((row) => {
      const person = people.get(row.identityId)
      return { ...proofOf(row), identity: referenceTo(identity, row.identityId, person?.name, person) }
    })
  },

  async writing(tx, next, before, { context, also }) {
    if (!before) await mayHaveOneMore(tx, next.identityId, next.method)
    // differs: sessions that the former password opened end with it
    else if (next.password !== before.password)
      for (const change of await endSessionsOf(tx, next.id, context.caller.apiSessionId)) also(change)
    return {}
  },

  async deleting(tx, { id, identityId }, { also }) {
    await refuseShuttingOutWithout(tx, identityId, id)
    for (const change of await endSessions(tx, sql`authenticator_id = ${id}`)) also(change)
  },
})

/** wire: members of the other method are left out, and so is a false isIssuedByNetwork. */
function proofOf({ method, username, certPem, fingerprint, isIssuedByNetwork }: Row): object {
  if (method === 'updb') return { username }
  return { certPem, fingerprint, ...(isIssuedByNetwork && { isIssuedByNetwork }) }
}
