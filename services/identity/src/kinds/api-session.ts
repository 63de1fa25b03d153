import { apiSession, apiSessionCertificate, timeText } from '@overlay/model'
import type { WaitForFollowers } from '@overlay/store/change-log'
import { type Kind, kind } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { identityReferences } from '../store/identities.js'

export const apiSessions = (waitForFollowers: WaitForFollowers): Kind =>
  kind(
    apiSession,
    {
      // an admin sees all sessions, others only the one of the request. wire: lists leave out those of access tokens
      scope: ({ isAdmin, apiSessionId }) =>
        isAdmin ? sql`(client_id is null or id = ${apiSessionId})` : sql`id = ${apiSessionId}`,

      async view(db, rows) {
        const ids = rows.map(({ identityId }) => identityId)
        const referenceOf = await identityReferences(db, ids)
        return rows.map(({ identityId, token, lastActivityAt }) => ({
          authQueries: [], // wire: lists and reads show an empty list, also while queries are open
          token,
          identity: referenceOf(identityId),
          ...(lastActivityAt && { cachedLastActivityAt: timeText(lastActivityAt) }),
        }))
      },
    },
    {
      operations: (uniform) => ({
        // when the answer leaves, its sessions are deleted, too
        delete: async (request, context) =>
          waitForFollowers(await uniform.delete(request, context), context, ['sessions']),
      }),
    },
  )

export const apiSessionCertificates: Kind = kind(apiSessionCertificate, {
  // differs: an admin, too, sees only those of the session of the request
  scope: ({ apiSessionId }) => sql`api_session_id = ${apiSessionId}`,
})
