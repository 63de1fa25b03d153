import type { Position } from '@overlay/rpc'
import { type Appended, headFor, type RowChange } from '@overlay/store/change-log'
import { batch, type Database, type Db, type Tx } from '@overlay/store/postgres'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import type { Scope } from '../domain/revocation.js'
import type { EndedSession, SessionAccess } from '../domain/session-access.js'
import type { LargeScope } from './revocation.js'

const ACCESS = sql`
  session.id, api_session_id as "apiSessionId", identity_id as "identityId", service_id as "serviceId", type,
  granting_policy_id as "grantingPolicyId", posture_at_routers as "postureAtRouters"`

/** The column by which a scope selects its sessions. */
const columns = {
  identity: 'identity_id',
  'api-session': 'api_session_id',
  service: 'service_id',
  policy: 'granting_policy_id',
} as const

/** Some sessions of each scope, at most `each`. `place`: the index of the scope. */
export async function sessionsOfScopes(
  db: Db,
  scopes: readonly Scope[],
  each: number,
): Promise<readonly (SessionAccess & { readonly place: number })[]> {
  if (scopes.length === 0) return []
  const ofKind = ([kind, column]: readonly [string, string]): Sql => sql`
    (select ${ACCESS} from session where scope.kind = ${kind} and ${raw(column)} = scope.entity_id limit ${each})`
  const any = join(Object.entries(columns).map(ofKind), ' union all ')
  const { rows } = await db.query<SessionAccess & { place: number }>(
    sql`
    select found.*, place::int - 1 as place
      from unnest(${scopes.map(({ kind }) => kind)}::text[], ${scopes.map(({ id }) => id)}::text[])
           with ordinality as scope (kind, entity_id, place)
     cross join lateral (${any}) as found`,
    'sessions-of-scopes',
  )
  return rows
}

/** The next sessions of one scope, in the order of ids. */
export async function nextSessions(
  db: Db,
  { kind, id, sweptTo }: Pick<LargeScope, 'kind' | 'id' | 'sweptTo'>,
  limit: number,
): Promise<readonly SessionAccess[]> {
  if (kind === 'posture-check') throw new Error('a posture check selects no sessions')
  const ofScope = kind === 'everything' ? sql`true` : sql`${raw(columns[kind])} = ${id}`
  const { rows } = await db.query<SessionAccess>(
    sql`select ${ACCESS} from session where ${ofScope} and id > ${sweptTo} order by id limit ${limit}`,
    `next-sessions-of-${kind}`,
  )
  return rows
}

/** The sessions among these that still exist. */
export async function sessionsById(db: Db, ids: readonly string[]): Promise<readonly SessionAccess[]> {
  const { rows } = await db.query<SessionAccess>(
    sql`select ${ACCESS} from session where id = any(${ids}) order by id`,
    'sessions-by-id',
  )
  return rows
}

/** Ends at most `limit` sessions and returns their changes. */
export async function endSessions(tx: Tx, which: Sql, limit?: number): Promise<RowChange[]> {
  const ended =
    limit === undefined ? which : sql`id in (select id from session where ${which} limit ${limit})`
  const { rows } = await tx.query<EndedSession>(sql`
    delete from session where ${ended}
    returning id, identity_id as "identityId", service_id as "serviceId", type, api_session_id as "apiSessionId"`)
  return rows.map(({ id, ...before }) => ({ kind: 'sessions', id, before, after: null, payload: null }))
}

export const endSession = (tx: Tx, id: string): Promise<RowChange[]> => endSessions(tx, sql`id = ${id}`)

/**
 * The same for many at once, as the system's own work and the last statement of its transaction: from here to the
 * commit no other transaction can append to this schema. Undefined: none of them existed.
 */
export async function endManySessions(tx: Tx, ids: readonly string[]): Promise<Appended | undefined> {
  if (ids.length === 0) return undefined
  // jsonb_object, because jsonb_build_object looks up the type of each argument for each row
  const { rows } = await tx.query<Position & { ended: readonly string[] | null; at: Date }>(
    sql`
    with ended as (
         delete from session where id = any(${ids})
      returning id, identity_id, service_id, type, api_session_id),
         ${headFor('ended')},
         row as materialized (
         select ended.*, at, start + row_number() over () as number from ended, head),
         audited as (
         insert into audit (number, kind, entity_id, before, identity_id, identity_name, source_address, request_id, at)
         select number, 'sessions', id,
                jsonb_object(array['identityId', 'serviceId', 'type', 'apiSessionId'],
                             array[identity_id, service_id, type, api_session_id]),
                '', '', '', '', at
           from row),
         changed as (
         insert into change (number, kind, entity_id, at) select number, 'sessions', id, at from row)
  select timeline, number, at, (select json_agg(id order by number) from row) as ended
    from head`,
    'end-sessions',
  )
  const [head] = rows
  if (!head) return undefined
  const { timeline, number, at } = head
  const [deleted, atMs] = [Buffer.alloc(0), at.getTime()]
  const changes = (head.ended ?? []).map((id, index, { length }) => {
    return { kind: 'sessions', id, number: number - length + index + 1, json: deleted, atMs }
  })
  return { position: { timeline, number }, changes }
}

/** Saves which policy grants each session now. */
export async function saveGrants(
  tx: Tx,
  granted: readonly { readonly id: string; readonly granting: string }[],
): Promise<void> {
  if (granted.length === 0) return
  await tx.query(
    sql`
    update session set granting_policy_id = granting
      from unnest(${granted.map(({ id }) => id)}::text[], ${granted.map(({ granting }) => granting)}::text[])
        as now (id, granting)
     where session.id = now.id`,
    'save-grants',
  )
}

export interface TokenSession {
  readonly id: string
  readonly token: string
  readonly type: 'Dial' | 'Bind'
  readonly apiSessionId: string
  readonly identityId: string
  readonly serviceId: string
  readonly postureAtRouters: boolean
}

/** Finds sessions; concurrent requests are batched. */
export function findSessionsBy(
  db: Database,
  member: 'id' | 'token',
): (value: string) => Promise<TokenSession | undefined> {
  return batch<string, TokenSession | undefined>(async (values) => {
    const { rows } = await db.query<TokenSession>(
      sql`
      select id, token, type, api_session_id as "apiSessionId", identity_id as "identityId", service_id as "serviceId",
             posture_at_routers as "postureAtRouters"
        from session where ${raw(member)} = any(${values})`,
      `find-sessions-by-${member}`,
    )
    const found = new Map(rows.map((row) => [row[member], row]))
    return values.map((value) => found.get(value))
  })
}

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
