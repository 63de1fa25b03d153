import { apiSession, apiSessionCertificate, identity, referenceTo, timeText } from '@overlay/model'
import { type Kind, kind } from '@overlay/platform/kind-store'
import type { Db } from '@overlay/platform/postgres'
import sql from 'sql-template-tag'

export const apiSessions: Kind = kind(apiSession, {
  // an admin sees all, everybody else the one it asks with
  scope: ({ isAdmin, apiSessionId }) => (isAdmin ? sql`true` : sql`id = ${apiSessionId}`),

  async view(db, rows) {
    const people = await peopleOf(
      db,
      rows.map(({ identityId }) => identityId),
    )
    return rows.map(({ identityId, token, lastActivityAt }) => {
      const person = people.get(identityId)
      return {
        authQueries: [], // wire: always empty here
        token,
        identity: referenceTo(identity, identityId, person?.name, person),
        ...(lastActivityAt && { cachedLastActivityAt: timeText(lastActivityAt) }),
      }
    })
  },
})

export const sessionCertificates: Kind = kind(apiSessionCertificate, {
  // differs: an admin, too, sees only those of the session it asks with
  scope: ({ apiSessionId }) => sql`api_session_id = ${apiSessionId}`,
})

interface Named {
  readonly [member: string]: string
  readonly id: string
  readonly name: string
  readonly authPolicyId: string
}

/** What a reference to an identity shows, its link to the auth policy included. */
export async function peopleOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, Named>> {
  const { rows } = await db.query<Named>(sql`
    select id, name, auth_policy_id as "authPolicyId" from identity where id = any(${ids})`)
  return new Map(rows.map((row) => [row.id, row]))
}
