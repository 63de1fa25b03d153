import type { RowChange } from '@overlay/store/change-log'
import type { Db, Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { endsSoon, type TokenFacts } from '../domain/oidc-claims.js'
import { REFRESH_TOKENS, TOKEN_FINGERPRINTS } from '../limits.js'
import { isMethodAllowed, isOlderThan } from './api-sessions.js'
import { fingerprintsOf } from './session-credentials.js'
import { endSessions } from './session-ends.js'

export interface RefreshToken {
  readonly id: string
  readonly apiSessionId: string
  readonly expiresAtSeconds: number
}

export async function insertRefreshToken(
  tx: Tx,
  { id, apiSessionId, expiresAtSeconds }: RefreshToken,
): Promise<void> {
  await tx.query(
    sql`
    with oldest as (
         delete from refresh_token
          where id in (select id from refresh_token where api_session_id = ${apiSessionId}
                        order by expires_at desc offset ${REFRESH_TOKENS - 1}))
    insert into refresh_token (id, api_session_id, expires_at)
    values (${id}, ${apiSessionId}, to_timestamp(${expiresAtSeconds}::float8))`,
    'insert-refresh-token',
  )
}

/** An API session with what its tokens say. */
export type GrantedSession = Omit<TokenFacts, 'issuer'>

/** The API session of a token of this client. Undefined: it has ended, or it is another client's. */
export async function grantedSession(
  db: Db,
  { apiSessionId, identityId, clientId }: Pick<TokenFacts, 'apiSessionId' | 'identityId' | 'clientId'>,
  lifetimeSeconds: number,
): Promise<GrantedSession | undefined> {
  const { rows } = await db.query<
    Omit<GrantedSession, 'mayCertsExpire'> & { readonly expiringPem: string | null }
  >(
    sql`
    select s.id as "apiSessionId", s.client_id as "clientId", s.identity_id as "identityId", i.name as "identityName",
           i.is_admin or i.is_default_admin as "isAdmin", i.external_id as "externalId", g.scopes, g.nonce, s.method,
           s.is_mfa_complete as "isMfaComplete", s.second_signer_id is not null as "hasSecondToken",
           extract(epoch from g.auth_time)::float8 as "authTimeSeconds", s.config_types as "configTypes",
           ${fingerprintsOf(sql`i.id`)}
             || array(select fingerprint from api_session_certificate
                       where api_session_id = s.id and valid_to > now()
                       order by created_at desc limit ${TOKEN_FINGERPRINTS}) as fingerprints,
           case when s.method = 'cert' then g.fingerprints else '{}' end as "loginFingerprints",
           (select a.cert_pem from authenticator a
             where a.id = s.authenticator_id and p.primary_cert_allow_expired_certs) as "expiringPem",
           g.env_info as "envInfo", g.sdk_info as "sdkInfo", s.ip_address as "remoteAddress",
           s.is_cert_extendable as "isCertExtendable"
      from api_session s
      join oidc_grant g on g.api_session_id = s.id
      join identity i on i.id = s.identity_id
      join auth_policy p on p.id = i.auth_policy_id
     where s.id = ${apiSessionId} and s.identity_id = ${identityId} and s.client_id = ${clientId}
       and s.expires_at > now() and ${isMethodAllowed}
       and (i.disabled_at is null or i.disabled_until <= now())
       and not ${isOlderThan(sql`s.created_at`, lifetimeSeconds * 1000)}`,
    'granted-session',
  )
  const [session] = rows
  if (!session) return undefined
  const { expiringPem, ...granted } = session
  return { ...granted, ...boundTo(granted), mayCertsExpire: endsSoon(expiringPem, new Date()) }
}

type Bound = Pick<TokenFacts, 'fingerprints' | 'loginFingerprints'>

/**
 * The certificates of a token, each once. wire: the chain of the login comes first, if its leaf still belongs to the
 * identity or session.
 */
export function boundTo({ fingerprints, loginFingerprints }: Bound): Bound {
  const [leaf] = loginFingerprints
  const chain = leaf !== undefined && fingerprints.includes(leaf) ? loginFingerprints : []
  const all = new Set([...chain, ...fingerprints])
  return { fingerprints: [...all].slice(0, TOKEN_FINGERPRINTS), loginFingerprints: chain }
}

/** Whether its clients present access tokens. */
export async function isBearerSession(db: Db, apiSessionId: string): Promise<boolean> {
  const { rows } = await db.query(
    sql`select from api_session where id = ${apiSessionId} and client_id is not null`,
    'is-bearer-session',
  )
  return rows.length === 1
}

/** How a refresh token is used: a refresh replaces it, an exchange does not. */
export type Use = 'replace' | 'keep'

/** `reused`: it has been replaced a while ago. `refused`: it does not exist, or has been replaced just now. */
export type Used = 'used' | 'refused' | 'reused'

/**
 * Uses a refresh token, under the lock of its API session. A client that has lost an answer, or sends two requests at
 * once, presents a replaced token within the grace.
 */
export async function useRefreshToken(
  tx: Tx,
  { id, apiSessionId }: Pick<RefreshToken, 'id' | 'apiSessionId'>,
  use: Use,
  graceSeconds: number,
): Promise<Used> {
  const { rows } = await tx.query<{ consumedMs: number | null }>(
    sql`
    select extract(epoch from now() - consumed_at)::float8 * 1000 as "consumedMs"
      from refresh_token
     where id = ${id} and api_session_id = ${apiSessionId} and expires_at > now()`,
    'refresh-token',
  )
  const [token] = rows
  if (!token) return 'refused'
  if (token.consumedMs !== null) return token.consumedMs > graceSeconds * 1000 ? 'reused' : 'refused'
  if (use === 'replace')
    await tx.query(
      sql`update refresh_token set consumed_at = now() where id = ${id}`,
      'consume-refresh-token',
    )
  return 'used'
}

/** Locks the API session, so that its tokens are used one after the other. False: it has ended. */
export async function lockSession(tx: Tx, apiSessionId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    sql`select from api_session where id = ${apiSessionId} and expires_at > now() for no key update`,
    'lock-bearer-session',
  )
  return rowCount === 1
}

/** Moves the end of the API session to that of its newest token. It never comes nearer. */
export async function extendSession(tx: Tx, apiSessionId: string, expiresAtSeconds: number): Promise<void> {
  await tx.query(
    sql`
    update api_session
       set expires_at = greatest(expires_at, to_timestamp(${expiresAtSeconds}::float8)),
           last_activity_at = now(), updated_at = now()
     where id = ${apiSessionId}`,
    'extend-bearer-session',
  )
}

/** The API session that a code has opened, for the client that knows its verifier. */
export interface RedeemedCode extends Pick<TokenFacts, 'apiSessionId' | 'identityId' | 'clientId'> {
  readonly codeChallenge: string
}

export async function redeemedCode(db: Db, codeDigest: Buffer): Promise<RedeemedCode | undefined> {
  const { rows } = await db.query<RedeemedCode & Record<string, unknown>>(
    sql`
    select s.id as "apiSessionId", s.identity_id as "identityId", s.client_id as "clientId",
           g.code_challenge as "codeChallenge"
      from oidc_grant g join api_session s on s.id = g.api_session_id
     where g.code_digest = ${codeDigest}`,
    'redeemed-code',
  )
  return rows[0]
}

/** Ends the API session of a token of this client, if it has not ended. */
export const endBearerSession = (
  tx: Tx,
  { apiSessionId, identityId, clientId }: Pick<TokenFacts, 'apiSessionId' | 'identityId' | 'clientId'>,
): Promise<RowChange[]> =>
  endSessions(tx, sql`id = ${apiSessionId} and identity_id = ${identityId} and client_id = ${clientId}`)

/**
 * Ends the API session of a login, which its id token names. Two logins of an identity by one client can be equal only
 * within a second and without a nonce: then both end.
 */
export const endSessionsOfLogin = (
  tx: Tx,
  {
    identityId,
    clientId,
    authTimeSeconds,
    nonce,
  }: Pick<TokenFacts, 'identityId' | 'clientId' | 'authTimeSeconds' | 'nonce'>,
): Promise<RowChange[]> =>
  endSessions(
    tx,
    sql`identity_id = ${identityId} and client_id = ${clientId} and id in (
      select api_session_id from oidc_grant
       where auth_time = to_timestamp(${authTimeSeconds}::float8) and nonce = ${nonce})`,
  )

export const removeOldRefreshTokens = (db: Db) =>
  db.query(sql`
    delete from refresh_token
     where id in (select id from refresh_token where expires_at <= now() for update skip locked)`)
