import { createHash, randomUUID, type X509Certificate } from 'node:crypto'
import { type Db, newId, type RowChange, type Tx } from '@overlay/platform'
import sql, { type Sql } from 'sql-template-tag'
import type { Demands, Factors } from '../domain/auth-queries.js'
import { sameText } from '../domain/same-text.js'
import { insertCertificate } from './session-certificates.js'

/** A session with what has to be known of its identity. */
export interface Session extends Factors {
  readonly id: string
  readonly token: string
  readonly identityId: string
  readonly identityName: string
  readonly isAdmin: boolean
  readonly isDefaultAdmin: boolean
  readonly authPolicyId: string
  readonly demands: Demands
  readonly authenticatorId: string
  readonly ipAddress: string
  readonly configTypes: string[]
  readonly isCertExtendable: boolean
  readonly createdAt: Date
  readonly lastActivityAt: Date
  readonly tags: object
  /** Where the history of the schema was when this was read. */
  readonly timeline: string
  readonly number: number
}

export interface NewSession {
  readonly identityId: string
  readonly authenticatorId: string
  /** The authority that vouches in place of an authenticator. */
  readonly voucherId?: string | undefined
  readonly ipAddress: string
  readonly configTypes: readonly string[]
  readonly isCertExtendable: boolean
  /** By which routers will know the connections of the session. */
  readonly certificate?: X509Certificate | undefined
}

const columns = sql`
  s.id, s.token, s.identity_id as "identityId", i.name as "identityName", i.is_admin as "isAdmin",
  i.is_default_admin as "isDefaultAdmin", i.auth_policy_id as "authPolicyId",
  json_build_object(
    'requireTotp', p.secondary_require_totp,
    'requireExtJwtSigner', p.secondary_require_ext_jwt_signer) as demands,
  s.authenticator_id as "authenticatorId", s.ip_address as "ipAddress", s.config_types as "configTypes",
  s.is_mfa_required as "isMfaRequired", s.is_mfa_complete as "isMfaComplete",
  s.is_cert_extendable as "isCertExtendable", s.created_at as "createdAt",
  s.last_activity_at as "lastActivityAt", s.tags, stream.timeline, stream.number::float8 as number`

const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/**
 * Opens a session, unless identity, authenticator or authority have gone meanwhile, or the identity is disabled: the
 * locks make whoever ends sessions wait, or us see that it has been before us.
 */
export async function openSession(db: Db, session: NewSession): Promise<Session | undefined> {
  const token = randomUUID()
  const { rows } = await db.query<Session>(
    sql`
    with person as (
         select * from identity
          where id = ${session.identityId}
            and (disabled_at is null or disabled_until <= clock_timestamp()) for share),
         proof as (${proofOf(session)}),
         s as (
         insert into api_session (id, token, token_digest, identity_id, authenticator_id, ca_id, ip_address,
                                  config_types, is_mfa_required, is_cert_extendable)
         select ${newId('cuid')}, ${token}, ${digestOf(token)}, person.id, ${session.authenticatorId}, proof.ca_id,
                ${session.ipAddress}, ${session.configTypes},
                exists (select from second_factor where identity_id = person.id and is_verified),
                ${session.isCertExtendable}
           from person, proof
      returning *)${certificateRow(session.certificate)}
  select ${columns} from s, person i, auth_policy p, stream where p.id = i.auth_policy_id`,
    `open-session${session.certificate ? '-by-certificate' : ''}${session.voucherId ? '-of-authority' : ''}`,
  )
  return rows[0]
}

const proofOf = ({ authenticatorId, voucherId }: NewSession): Sql =>
  voucherId
    ? sql`select id as ca_id from known_ca where id = ${voucherId} for share`
    : sql`select null as ca_id from authenticator where id = ${authenticatorId} for share`

function certificateRow(leaf: X509Certificate | undefined): Sql {
  if (!leaf) return sql``
  return sql`,
         vouched as (${insertCertificate({ id: newId('short'), leaf, pem: leaf.toString() })} from s)`
}

export async function sessionByToken(db: Db, token: string): Promise<Session | undefined> {
  const found = await oneSession(db, sql`s.token_digest = ${digestOf(token)}`, 'session-by-token')
  return found && sameText(found.token, token) ? found : undefined
}

export const sessionById = (db: Db, id: string): Promise<Session | undefined> =>
  oneSession(db, sql`s.id = ${id}`, 'session-by-id')

async function oneSession(db: Db, which: Sql, name: string): Promise<Session | undefined> {
  const { rows } = await db.query<Session>(
    sql`
    select ${columns}
      from stream, api_session s
      join identity i on i.id = s.identity_id
      join auth_policy p on p.id = i.auth_policy_id
     where ${which}`,
    name,
  )
  return rows[0]
}

/** Ends sessions. Followers hear of each: caches forget it, routers close its connections. */
export async function endSessions(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string; identityId: string; authenticatorId: string }>(sql`
    delete from api_session where ${which}
 returning id, identity_id as "identityId", authenticator_id as "authenticatorId"`)
  return rows.map((before) => ({ kind: 'api-sessions', id: before.id, before, after: null, told: null }))
}

/** Last use, as gateways have seen it. Answers which of the sessions are gone. */
export async function markActivity(
  tx: Tx,
  ids: readonly string[],
  atMs: readonly number[],
): Promise<string[]> {
  // a mark that a crash loses is made again with the next request
  await tx.query(sql`select set_config('synchronous_commit', 'off', true)`)
  const { rows } = await tx.query<{ id: string }>(sql`
    with mark as (
         select id, least(to_timestamp(max(at) / 1000), now()) as at
           from unnest(${ids}::text[], ${atMs}::float8[]) as given (id, at) group by id),
         held as ( -- in one order: two gateways mark the same sessions
         select s.id, mark.at from api_session s join mark using (id) order by s.id for no key update of s)
  update api_session s
     set last_activity_at = greatest(s.last_activity_at, held.at),
         updated_at = greatest(s.updated_at, held.at) -- wire: use moves it
    from held where s.id = held.id
returning s.id`)
  const alive = new Set(rows.map(({ id }) => id))
  return ids.filter((id) => !alive.has(id))
}

/** Some of the sessions that nobody has used for so long; nothing while another replica is at it. */
export async function endIdleSessions(tx: Tx, idleMs: number, limit: number): Promise<RowChange[]> {
  const { rows } = await tx.query<{ mine: boolean }>(sql`
    select pg_try_advisory_xact_lock(hashtextextended('end idle sessions', 0)) as mine`)
  if (!rows[0]?.mine) return []
  return endSessions(
    tx,
    sql`id in (
      select id from api_session
       where last_activity_at < now() - ${idleMs}::float8 * interval '1 millisecond'
       limit ${limit} for update skip locked)`,
  )
}
