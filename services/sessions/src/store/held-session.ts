import { batch, type Database } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

/** A session that an API session may have. */
export interface SessionKey {
  readonly apiSessionId: string
  readonly serviceId: string
  readonly type: 'Dial' | 'Bind'
}

export interface HeldSession {
  readonly id: string
  readonly token: string
}

/** Finds sessions. Concurrent calls are batched. */
export const heldSessions = (db: Database) =>
  batch<SessionKey, HeldSession | undefined>(async (keys) => {
    const { rows } = await db.query<HeldSession & { place: number }>(
      sql`
      select id, token, place::int - 1 as place
        from unnest(${keys.map(({ apiSessionId }) => apiSessionId)}::text[],
                    ${keys.map(({ serviceId }) => serviceId)}::text[], ${keys.map(({ type }) => type)}::text[])
             with ordinality as key (api_session, service, kind, place)
        join session on api_session_id = api_session and service_id = service and type = kind`,
      'held-sessions',
    )
    const found = new Map(rows.map((row) => [row.place, row]))
    return keys.map((_, place) => found.get(place))
  })
