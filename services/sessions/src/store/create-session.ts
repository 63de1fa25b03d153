import { randomUUID } from 'node:crypto'
import type { BaseRow, session, Tags, ValuesOf } from '@overlay/model'
import { newId } from '@overlay/platform/kind-store'
import { batch, type Database } from '@overlay/platform/postgres'
import type { Positions } from '@overlay/rpc'
import sql from 'sql-template-tag'

export type SessionRow = ValuesOf<typeof session> & BaseRow

export interface Wanted {
  readonly type: 'Dial' | 'Bind'
  readonly apiSessionId: string
  readonly identityId: string
  readonly serviceId: string
  readonly servicePolicies: readonly string[]
  readonly tags: Tags
  /** Up to where the streams were known that can take this access away again. */
  readonly authorized: Positions
}

/** Streams that can take an access away. */
const guards = ['identity', 'policy'] as const

interface Made {
  readonly ord: number
  readonly isAuthorized: boolean
  readonly createdAt: Date | null
}

export type MakeSession = (wanted: Wanted) => Promise<SessionRow | undefined>

/**
 * Makes the session, or finds the one that exists. Undefined: a change that concerns this access has been followed
 * past the positions of the authorization, which must be asked for again. The function `make_sessions` locks the rows
 * of `followed` before it compares; a follower locks them before it records a revocation. So either the create sees
 * the revocation, or the sweep sees the session. Creates that arrive at the same time share one statement.
 */
export function sessionMaker(db: Database): MakeSession {
  const insert = batch<Row, Made | undefined>((rows) => insertAll(db, rows))
  return async (wanted) => {
    const row = rowFor(wanted)
    const made = await insert(row)
    if (!made?.isAuthorized) return undefined
    if (!made.createdAt) return findSession(db, wanted)
    const { id, token } = row
    const { type, apiSessionId, identityId, serviceId, servicePolicies } = wanted
    const times = { createdAt: made.createdAt, updatedAt: made.createdAt }
    const values = { id, token, type, apiSessionId, identityId, serviceId, servicePolicies }
    return { ...values, ...times, tags: row.tags, isSystem: false }
  }
}

type Row = ReturnType<typeof rowFor>

const rowFor = (wanted: Wanted) => ({
  id: newId('cuid'),
  token: randomUUID(),
  type: wanted.type,
  api_session_id: wanted.apiSessionId,
  service_id: wanted.serviceId,
  identity_id: wanted.identityId,
  service_policies: wanted.servicePolicies,
  tags: wanted.tags,
  ...Object.fromEntries(
    guards.flatMap((schema) => [
      [`${schema}_timeline`, wanted.authorized[schema]?.timeline],
      [`${schema}_number`, wanted.authorized[schema]?.number],
    ]),
  ),
})

async function insertAll(db: Database, rows: readonly Row[]): Promise<(Made | undefined)[]> {
  const answer = await db.query<Made>(
    sql`
    select ord, is_authorized as "isAuthorized", created_at as "createdAt"
      from make_sessions(${JSON.stringify(rows)}::jsonb)`,
    'make-sessions',
  )
  const byOrd = new Map(answer.rows.map((made) => [made.ord, made]))
  return rows.map((_, i) => byOrd.get(i))
}

async function findSession(
  db: Database,
  { apiSessionId, serviceId, type }: Wanted,
): Promise<SessionRow | undefined> {
  const { rows } = await db.query<SessionRow>(
    sql`
    select id, token, type, api_session_id as "apiSessionId", service_id as "serviceId", identity_id as "identityId",
           service_policies as "servicePolicies", tags, is_system as "isSystem", created_at as "createdAt",
           updated_at as "updatedAt"
      from session
     where api_session_id = ${apiSessionId} and service_id = ${serviceId} and type = ${type}`,
    'find-session',
  )
  return rows[0]
}
