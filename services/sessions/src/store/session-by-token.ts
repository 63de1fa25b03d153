import { batch, type Database } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

export interface TokenSession {
  readonly id: string
  readonly token: string
  readonly type: 'Dial' | 'Bind'
  readonly apiSessionId: string
  readonly identityId: string
  readonly serviceId: string
}

/** Finds sessions by token; concurrent requests are batched. */
export function sessionsByToken(db: Database): (token: string) => Promise<TokenSession | undefined> {
  return batch<string, TokenSession | undefined>(async (tokens) => {
    const { rows } = await db.query<TokenSession>(
      sql`
      select id, token, type, api_session_id as "apiSessionId", identity_id as "identityId", service_id as "serviceId"
        from session where token = any(${tokens})`,
      'sessions-by-token',
    )
    const byToken = new Map(rows.map((row) => [row.token, row]))
    return tokens.map((token) => byToken.get(token))
  })
}
