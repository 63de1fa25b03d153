import { randomUUID } from 'node:crypto'
import type { BaseRow, session, Tags, ValuesOf } from '@overlay/model'
import { combine, type Database, newId } from '@overlay/platform'
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
  readonly fresh: boolean
  readonly createdAt: Date | null
}

export type MakeSession = (wanted: Wanted) => Promise<SessionRow | undefined>

/**
 * Makes the session, or finds the one that is there, unless a stream that can take access away has been followed
 * past the positions of the authorization: then undefined, and the question must be asked anew. The consumer locks
 * its `followed` row before it looks for live sessions, this statement before it inserts: one of the two sees the
 * other. Sessions that are wanted at the same time go in one statement.
 */
export function sessionMaker(db: Database): MakeSession {
  const insert = combine<Row, Made | undefined>((rows) => insertAll(db, rows))
  return async (wanted) => {
    const row = rowFor(wanted)
    const made = await insert(row)
    if (!made?.fresh) return undefined
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
    with held as (
         select schema, timeline, number from followed where schema = any(${[...guards]}) for share),
         wanted as (
         select * from rows from (jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as (
                id text, token text, type text, api_session_id text, service_id text, identity_id text,
                service_policies text[], tags jsonb, identity_timeline uuid, identity_number bigint,
                policy_timeline uuid, policy_number bigint)) with ordinality as list (
                id, token, type, api_session_id, service_id, identity_id, service_policies, tags,
                identity_timeline, identity_number, policy_timeline, policy_number, ord)),
         fresh as (
         select wanted.* from wanted
          where exists (select from held where schema = 'identity' and timeline = identity_timeline
                                           and number <= identity_number)
            and exists (select from held where schema = 'policy' and timeline = policy_timeline
                                           and number <= policy_number)),
         made as (
         insert into session (id, token, type, api_session_id, service_id, identity_id, service_policies, tags)
         select id, token, type, api_session_id, service_id, identity_id, service_policies, tags from fresh
             on conflict on constraint session_is_one_of_its_sort do nothing
      returning id, created_at)
    select wanted.ord::int - 1 as ord, fresh.id is not null as fresh, made.created_at as "createdAt"
      from wanted left join fresh using (ord) left join made on made.id = wanted.id`,
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
