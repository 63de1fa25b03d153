import { apiSessionCertificate } from '@overlay/model'
import { type Kind, kind } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'

export const apiSessionCertificates: Kind = kind(apiSessionCertificate, {
  // differs: an admin, too, sees only those of the session of the request
  scope: ({ apiSessionId }) => sql`api_session_id = ${apiSessionId}`,
})
