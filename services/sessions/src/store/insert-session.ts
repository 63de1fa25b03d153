import { randomUUID } from 'node:crypto'
import type { BaseRow, session, ValuesOf } from '@overlay/model'
import type { Positions } from '@overlay/rpc'
import { newId } from '@overlay/store/kind-store'
import { batch, type Database } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

export type SessionRow = ValuesOf<typeof session> & BaseRow

export interface NewSession
  extends Pick<
    SessionRow,
    'type' | 'apiSessionId' | 'identityId' | 'serviceId' | 'servicePolicies' | 'postureAtRouters' | 'tags'
  > {
  /** Positions of the authorization in the streams that can revoke this access. */
  readonly authorized: Positions
}

/** Streams that can revoke an access. */
const guards = ['identity', 'policy'] as const

interface Inserted {
  readonly ord: number
  readonly isAuthorized: boolean
  readonly createdAt: Date | null
}

export type InsertSession = (request: NewSession) => Promise<SessionRow | undefined>

/**
 * Inserts the session, or finds the existing one. Undefined: a change that concerns this access has been followed past
 * the positions of the authorization, and a new authorization is necessary. The function `make_sessions` locks the rows
 * of `followed` before it compares; a follower locks them before it records a revocation. So either the create sees
 * the revocation, or the sweep sees the session. Concurrent creates are batched.
 */
export function openSessionInserter(
  db: Database,
  onInserted: (session: SessionRow) => void = () => undefined,
): InsertSession {
  const insert = batch<Row, Inserted | undefined>((rows) => insertAll(db, rows))
  return async (request) => {
    const row = rowFor(request)
    const inserted = await insert(row)
    if (!inserted?.isAuthorized) return undefined
    if (!inserted.createdAt) return findSession(db, request)
    const { id, token } = row
    const { type, apiSessionId, identityId, serviceId, servicePolicies, postureAtRouters } = request
    const times = { createdAt: inserted.createdAt, updatedAt: inserted.createdAt }
    const access = { apiSessionId, identityId, serviceId, servicePolicies, postureAtRouters }
    const values = { id, token, type, ...access }
    const session = { ...values, ...times, tags: row.tags, isSystem: false }
    onInserted(session)
    return session
  }
}

type Row = ReturnType<typeof rowFor>

const rowFor = (request: NewSession) => ({
  id: newId('cuid'),
  token: randomUUID(),
  type: request.type,
  api_session_id: request.apiSessionId,
  service_id: request.serviceId,
  identity_id: request.identityId,
  service_policies: request.servicePolicies,
  posture_at_routers: request.postureAtRouters,
  tags: request.tags,
  ...Object.fromEntries(
    guards.flatMap((schema) => [
      [`${schema}_timeline`, request.authorized[schema]?.timeline],
      [`${schema}_number`, request.authorized[schema]?.number],
    ]),
  ),
})

async function insertAll(db: Database, rows: readonly Row[]): Promise<(Inserted | undefined)[]> {
  const answer = await db.query<Inserted>(
    sql`
    select ord, is_authorized as "isAuthorized", created_at as "createdAt"
      from make_sessions(${JSON.stringify(rows)}::jsonb)`,
    'make-sessions',
  )
  const byOrd = new Map(answer.rows.map((row) => [row.ord, row]))
  return rows.map((_, i) => byOrd.get(i))
}

async function findSession(
  db: Database,
  { apiSessionId, serviceId, type }: NewSession,
): Promise<SessionRow | undefined> {
  const { rows } = await db.query<SessionRow>(
    sql`
    select id, token, type, api_session_id as "apiSessionId", service_id as "serviceId", identity_id as "identityId",
           service_policies as "servicePolicies", posture_at_routers as "postureAtRouters", tags, is_system as "isSystem", created_at as "createdAt",
           updated_at as "updatedAt"
      from session
     where api_session_id = ${apiSessionId} and service_id = ${serviceId} and type = ${type}`,
    'find-session',
  )
  return rows[0]
}
