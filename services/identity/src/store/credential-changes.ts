import { type Change, CREDENTIALS, type Position } from '@overlay/rpc'
import { headFor, type LoadRows } from '@overlay/store/change-log'
import { allPages } from '@overlay/store/kind-store'
import type { Db } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { LOGGED_CREDENTIALS, SESSION_FINGERPRINTS } from '../limits.js'
import { fingerprintsOf } from './session-credentials.js'

export interface LoggedChanges {
  readonly position: Position
  readonly changes: readonly Change[]
  /** There may be more. */
  readonly hasMore: boolean
}

/**
 * Moves changes of credentials to the change log. Waits for other replicas that do the same. Undefined: all that were
 * committed before the call are there.
 */
export async function logCredentialChanges(db: Db): Promise<LoggedChanges | undefined> {
  const { rows } = await db.query<Position & { id: string; at: Date; taken: number }>(
    sql`
    with taken as (
         delete from credential_change
          where id in (select id from credential_change order by id limit ${LOGGED_CREDENTIALS} for update)
      returning api_session_id),
         session as materialized (select distinct api_session_id as id from taken),
         ${headFor('session')},
         row as materialized (
         select session.id, timeline, at, start + row_number() over (order by session.id) as number
           from session, head),
         changed as (
         insert into change (number, kind, entity_id, entity, at)
         select number, ${CREDENTIALS}, id, '{}', at from row)
  select id, timeline, number, at, (select count(*)::int from taken) as taken from row order by number`,
    'log-credentials',
  )
  const last = rows.at(-1)
  if (!last) return undefined
  return {
    position: { timeline: last.timeline, number: last.number },
    changes: rows.map(({ id, number, at }) => ({
      kind: CREDENTIALS,
      id,
      json: noContent,
      atMs: at.getTime(),
      number,
    })),
    hasMore: last.taken === LOGGED_CREDENTIALS,
  }
}

const noContent = Buffer.from('{}')

/** The credentials of one API session that is fully authenticated, or the revocation of one. */
export interface Credentials {
  readonly id: string
  /** Null: clients present access tokens instead. */
  readonly token: string | null
  /** Those that routers may know connections by, oldest first. */
  readonly accessTokens: readonly { readonly id: string; readonly token: string }[]
  readonly identityId: string
  /** SHA-1 of the certificates of its identity, hex; also of those that are pending after an extension. */
  readonly fingerprints: readonly string[]
  /** Certificates of the session itself, which are valid until then, in milliseconds. */
  readonly expiring: readonly { readonly fingerprint: string; readonly validToMs: number }[]
  /**
   * Of a revocation, which has no credentials: routers refuse its access tokens until then, when the last one has expired.
   */
  readonly revokedUntilMs?: number
}

/**
 * The API sessions of these ids, or all, and the revocations: API sessions of access tokens that have not expired, which
 * have ended or are no longer fully authenticated.
 */
export const credentialLoader = (db: Db): LoadRows =>
  async function* (ids) {
    const of = (column: Sql): Sql => (ids ? sql`${column} = any(${ids})` : sql`true`)
    const name = ids ? 'credentials-of' : 'all-credentials'
    const all = allPages<Credentials>((last, limit) =>
      db.query(
        sql`
        select s.id, case when s.client_id is null then s.token end as token, s.identity_id as "identityId",
               case when s.client_id is null then '[]'
                    else (select coalesce(json_agg(json_build_object('id', t.id::text, 'token', t.token)
                                                   order by t.id), '[]')
                            from access_token t where t.api_session_id = s.id)
                end as "accessTokens",
               ${fingerprintsOf(sql`s.identity_id`)} as fingerprints,
               (select coalesce(json_agg(json_build_object(
                         'fingerprint', c.fingerprint, 'validToMs', extract(epoch from c.valid_to) * 1000)), '[]')
                  from (select fingerprint, valid_to from api_session_certificate
                         where api_session_id = s.id and valid_to > now()
                         order by created_at desc limit ${SESSION_FINGERPRINTS}) as c) as expiring
          from ${authenticating}
         where s.id > ${last?.id ?? ''} and ${of(sql`s.id`)} and ${isAuthenticated}
         order by s.id limit ${limit}`,
        name,
      ),
    )
    for await (const row of all) yield { id: row.id, json: row }

    const revoked = allPages<Pick<Credentials, 'id' | 'identityId' | 'revokedUntilMs'>>((last, limit) =>
      db.query(
        sql`
        select id, identity_id as "identityId", extract(epoch from expires_at)::float8 * 1000 as "revokedUntilMs"
          from (select id, identity_id, expires_at from revoked_api_session where ${of(sql`id`)}
                 union all
                select s.id, s.identity_id, (select max(expires_at) from access_token where api_session_id = s.id)
                  from ${authenticating}
                 where s.client_id is not null and ${of(sql`s.id`)} and ${isAuthenticated} is not true) as revoked
         where id > ${last?.id ?? ''} and expires_at > now()
         order by id limit ${limit}`,
        `revoked-${name}`,
      ),
    )
    for await (const row of revoked) yield { id: row.id, json: { ...noCredentials, ...row } }
  }

const noCredentials = { token: null, accessTokens: [], fingerprints: [], expiring: [] }

const authenticating = sql`
  api_session s join identity i on i.id = s.identity_id join auth_policy p on p.id = i.auth_policy_id`

const isAuthenticated = sql`
  (s.method = 'router' -- authenticated by its control channel
   or (p.secondary_require_ext_jwt_signer is null
       or s.second_token_until > now() and exists (
         select from external_jwt_signer x
          where x.id = p.secondary_require_ext_jwt_signer and x.id = s.second_signer_id and x.enabled))
      and (s.is_mfa_complete or not (s.is_mfa_required or p.secondary_require_totp)))`
