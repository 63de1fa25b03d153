import { createHash, randomUUID, type X509Certificate } from 'node:crypto'
import { newId } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { Demands, Factors } from '../domain/auth-queries.js'
import { sameText } from '../domain/same-text.js'
import { hasPassword } from './authenticators.js'
import { allOrNone, typesNamed } from './config-types.js'
import { type ClientInfo, infoDiffers } from './identities.js'
import { type FirstTokens, firstTokenRows, insertCertificate } from './session-credentials.js'
import { authenticatorOf } from './signers.js'
import type { Subject } from './subjects.js'

/** A session and what its answers need of its identity. */
export interface Session extends Factors {
  readonly id: string
  readonly token: string
  readonly identityId: string
  readonly identityName: string
  readonly externalId: string | null
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
  readonly ageMs: number
  /** Until its last token expires. Null: it ends when it is idle. */
  readonly leftMs: number | null
  /** Where the change log of the schema was when the session was read. */
  readonly timeline: string
  readonly number: number
}

export interface OpenedSession extends Session {
  /** The client reports other facts of itself than its identity has. */
  readonly hasNewInfo: boolean
}

/** `password` and `fingerprint`: as the authenticator had them when the login was checked. */
export interface NewSession
  extends Pick<Subject, 'identityId' | 'authenticatorId' | 'method' | 'password' | 'fingerprint'>,
    Partial<Pick<Subject, 'certifyingCaId' | 'signerId'>> {
  readonly ipAddress: string
  /** By id or name. */
  readonly configTypes: readonly string[]
  readonly isCertExtendable: boolean
  /** The certificate by which routers recognize connections of the session. */
  readonly certificate?: X509Certificate | undefined
  /** A session of access tokens. It replaces a finished login. */
  readonly bearer?: {
    readonly id: string
    readonly clientId: string
    readonly expiresAtSeconds: number
    readonly codeDigest: Buffer
    /** The login has passed a second factor, which is still there. */
    readonly isMfaComplete: boolean
    readonly tokens: FirstTokens
  }
  /** What the client reports of itself. */
  readonly info?: ClientInfo | undefined
  /** The token that was presented as the second factor. */
  readonly second?: SecondToken | undefined
}

/** A valid token of the signer that the auth policy demands, of the identity of the session. */
export interface SecondToken {
  readonly signerId: string
  /** Undefined: it does not expire. */
  readonly untilMs: number | undefined
}

/** Of policy `p`. */
const demandsColumn = sql`
  json_build_object(
    'requireTotp', p.secondary_require_totp,
    'requireExtJwtSigner', p.secondary_require_ext_jwt_signer,
    'externalAuthUrl', (
      select external_auth_url from external_jwt_signer where id = p.secondary_require_ext_jwt_signer)) as demands`

/** Of session `s`, identity `i`, policy `p` and the change log. */
export const sessionColumns = sql`
  s.id, s.token, s.identity_id as "identityId", i.name as "identityName",
  i.external_id as "externalId", i.is_admin as "isAdmin",
  i.is_default_admin as "isDefaultAdmin", i.auth_policy_id as "authPolicyId",
  ${demandsColumn},
  s.authenticator_id as "authenticatorId", s.ip_address as "ipAddress", s.config_types as "configTypes",
  s.is_mfa_required as "isMfaRequired", s.is_mfa_complete as "isMfaComplete",
  s.is_cert_extendable as "isCertExtendable", s.created_at as "createdAt",
  s.last_activity_at as "lastActivityAt", s.tags,
  (select id from external_jwt_signer
    where id = s.second_signer_id and enabled and s.second_token_until > clock_timestamp()) as "secondSigner",
  extract(epoch from clock_timestamp() - s.created_at)::float8 * 1000 as "ageMs",
  extract(epoch from s.expires_at - clock_timestamp())::float8 * 1000 as "leftMs", stream.timeline, stream.number::float8 as number`

/** Whether policy `p` allows the method by which session `s` was opened, and the signer if it was a token. */
export const isMethodAllowed = sql`
  case s.method when 'updb' then p.primary_updb_allowed
                when 'cert' then p.primary_cert_allowed
                when 'ext-jwt' then p.primary_ext_jwt_allowed and exists (
                  select from external_jwt_signer x
                   where s.authenticator_id = ${authenticatorOf('')} || x.id and x.enabled
                     and (p.primary_ext_jwt_allowed_signers = '{}' or x.id = any(p.primary_ext_jwt_allowed_signers)))
                else true end`

/** Whether more than `ms` have passed since then; 0: never. */
export const isOlderThan = (since: Sql, ms: number): Sql =>
  sql`(${ms}::float8 > 0 and ${since} < now() - ${ms}::float8 * interval '1 millisecond')`

export const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/**
 * Opens a session, unless identity, authenticator or authority have been deleted meanwhile, the identity is disabled,
 * the credential has been replaced or the code of the login used. The locks order this after or before any transaction
 * that ends sessions.
 */
export async function openSession(db: Db, session: NewSession): Promise<OpenedSession | undefined> {
  const token = randomUUID()
  const types = typesNamed(session.configTypes)
  const { bearer, second, info } = session
  const { rows } = await db.query<OpenedSession>(
    sql`
    with ${types ? sql`type as (${types.type}),` : sql``}
         person as (
         select * from identity
          where id = ${session.identityId} ${types ? lockedFirst : sql``}
            and (disabled_at is null or disabled_until <= clock_timestamp()) for share),
         proof as (${proofOf(session)}),
         ${bearer ? sql`login as (${loginOf(session, bearer)}),` : sql``}
         s as (
         insert into api_session (id, token, token_digest, identity_id, authenticator_id, ca_id, ip_address,
                                  config_types, is_mfa_required, is_cert_extendable, method, client_id, expires_at,
                                  second_signer_id, second_token_until)
         select ${bearer?.id ?? newId('cuid')}, ${token}, ${digestOf(token)}, person.id, ${session.authenticatorId}, proof.ca_id,
                ${session.ipAddress}, ${types?.ids ?? allOrNone(session.configTypes)},
                exists (select from second_factor where identity_id = person.id and is_verified),
                ${session.isCertExtendable}, ${session.method}, ${bearer?.clientId ?? null},
                to_timestamp(${bearer?.expiresAtSeconds ?? null}::float8),
                ${second?.signerId ?? null}, ${endOf(second)}
           from person, proof ${bearer ? sql`, login` : sql``}
      returning *)${certificateRow(session.certificate)}${bearer ? firstTokenRows(bearer.tokens) : sql``}
  select ${sessionColumns}, ${info ? infoDiffers(sql`i`, info) : sql`false`} as "hasNewInfo" from s, person i, auth_policy p, stream where p.id = i.auth_policy_id`,
    `open-session${session.certificate ? '-by-certificate' : ''}${session.certifyingCaId ? '-of-authority' : ''}${session.signerId ? '-of-signer' : ''}${types ? '-with-types' : ''}${nameOfRest(session)}`,
  )
  return rows[0]
}

const nameOfRest = ({ bearer, info }: NewSession): string =>
  `${bearer ? '-for-code' : ''}${bearer?.tokens.refresh ? '-with-refresh' : ''}${info ? '-with-info' : ''}`

/** Of parallel statements with one code, one deletes the login. The identity is locked first, as by who changes it. */
const loginOf = (
  { identityId }: NewSession,
  { codeDigest, isMfaComplete }: Pick<NonNullable<NewSession['bearer']>, 'codeDigest' | 'isMfaComplete'>,
): Sql => sql`
  delete from oidc_login
   where code_digest = ${codeDigest} and identity_id = ${identityId} and is_mfa_complete = ${isMfaComplete}
     and exists (select from person)
returning code_digest, code_challenge`

/** Locks the config types before the identity, in the order of the consumer that deletes them. */
export const lockedFirst = sql`and (select count(*) from type) >= 0`

const proofOf = ({ authenticatorId, password, fingerprint, certifyingCaId, signerId }: NewSession): Sql => {
  if (certifyingCaId) return sql`select id as ca_id from known_ca where id = ${certifyingCaId} for share`
  if (signerId)
    return sql`select null as ca_id from external_jwt_signer where id = ${signerId} and enabled for share`
  return sql`
         select null as ca_id from authenticator
          where id = ${authenticatorId} and ${hasPassword(password)}
            and fingerprint is not distinct from ${fingerprint} for share`
}

/** As SQL: null without a token. */
const endOf = (second: SecondToken | undefined): Sql =>
  endOfToken(sql`${second?.signerId ?? null}::text`, sql`${second?.untilMs ?? null}::float8`)

/** The end of the second token, null without a signer. */
export const endOfToken = (signerId: Sql, untilMs: Sql): Sql => sql`
  case when ${signerId} is not null then coalesce(to_timestamp(${untilMs} / 1000), 'infinity') end`

function certificateRow(leaf: X509Certificate | undefined): Sql {
  if (!leaf) return sql``
  return sql`,
         certified as (${insertCertificate({ id: newId('short'), leaf, pem: leaf.toString() })} from s)`
}

/** Lifetimes in seconds; 0: no limit. */
export async function sessionByToken(
  db: Db,
  token: string,
  lifetimeSeconds: number,
): Promise<Session | undefined> {
  const which = sql`s.token_digest = ${digestOf(token)} and s.client_id is null`
  const session = await oneSession(db, which, lifetimeSeconds, 'session-by-token')
  return session && sameText(session.token, token) ? session : undefined
}

export const sessionById = (db: Db, id: string, lifetimeSeconds: number): Promise<Session | undefined> =>
  oneSession(db, sql`s.id = ${id}`, lifetimeSeconds, 'session-by-id')

/** The session of access tokens. They expire before it does. */
export const bearerSession = (
  db: Db,
  { apiSessionId, identityId }: { readonly apiSessionId: string; readonly identityId: string },
  lifetimeSeconds: number,
): Promise<Session | undefined> =>
  oneSession(
    db,
    sql`s.id = ${apiSessionId} and s.identity_id = ${identityId} and s.client_id is not null`,
    lifetimeSeconds,
    'bearer-session',
  )

/**
 * Notes until when the second token counts for routers. False: the session has ended, or a later end is noted.
 * wire: a request without the token is not fully authenticated, also within this time.
 */
export async function noteSecondToken(db: Db, sessionId: string, second: SecondToken): Promise<boolean> {
  const { rowCount } = await db.query(
    sql`
    update api_session set second_signer_id = ${second.signerId}, second_token_until = ${endOf(second)}
     where id = ${sessionId}
       and (second_signer_id is distinct from ${second.signerId} or second_token_until < ${endOf(second)})`,
    'note-second-token',
  )
  return rowCount === 1
}

/** Refuses a session that has outlived its lifetime or its policy before the reaper deletes it. */
async function oneSession(
  db: Db,
  which: Sql,
  lifetimeSeconds: number,
  name: string,
): Promise<Session | undefined> {
  const { rows } = await db.query<Session>(
    sql`
    select ${sessionColumns}
      from stream, api_session s
      join identity i on i.id = s.identity_id
      join auth_policy p on p.id = i.auth_policy_id
     where ${which} and ${isMethodAllowed} and (s.expires_at is null or s.expires_at > now())
       and not ${isOlderThan(sql`s.created_at`, lifetimeSeconds * 1000)}`,
    name,
  )
  return rows[0]
}

/** Stores the last use that a gateway reports. Returns the ids of sessions that do not exist. */
export async function markActivity(
  tx: Tx,
  ids: readonly string[],
  atMs: readonly number[],
): Promise<string[]> {
  // after a crash the next request marks the session again
  await tx.query(sql`select set_config('synchronous_commit', 'off', true)`)
  const { rows } = await tx.query<{ id: string }>(sql`
    with mark as (
         select id, least(to_timestamp(max(at) / 1000), now()) as at
           from unnest(${ids}::text[], ${atMs}::float8[]) as report (id, at) group by id),
         locked as ( -- in one order: two gateways mark the same sessions
         select s.id, mark.at from api_session s join mark using (id) order by s.id for no key update of s)
  update api_session s
     set last_activity_at = greatest(s.last_activity_at, locked.at),
         updated_at = greatest(s.updated_at, locked.at) -- wire: each use changes updatedAt
    from locked where s.id = locked.id
returning s.id`)
  const existing = new Set(rows.map(({ id }) => id))
  return ids.filter((id) => !existing.has(id))
}
