import type { X509Certificate } from 'node:crypto'
import { apiSessionCertificate } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { deleteRows, insertRows } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import { fingerprintOf } from '@overlay/x509'
import sql, { type Sql } from 'sql-template-tag'
import { subjectTextOf } from '../domain/leaf.js'
import type { TokenFacts } from '../domain/oidc-claims.js'
import {
  ACCESS_TOKENS,
  REMOVED_TOKENS,
  SEEN_EVERY,
  SESSION_FINGERPRINTS,
  TOKEN_IN_USE,
  TOKEN_UNUSED,
} from '../limits.js'

/** SHA-1 of the certificates of an identity, hex, newest first; also of those that are pending after an extension. */
export const fingerprintsOf = (identityId: Sql): Sql => sql`
  array(select print.value
          from authenticator a, unnest(array[a.fingerprint, a.unverified_fingerprint]) as print (value)
         where a.identity_id = ${identityId} and print.value is not null
         order by a.created_at desc limit ${SESSION_FINGERPRINTS})`

export interface NewAccessToken {
  readonly apiSessionId: string
  /** As the client presents it. */
  readonly token: string
  readonly expiresAt: Date
}

/**
 * Stores an access token that has been issued, so that routers accept it. Callers have locked the row of the API
 * session in this transaction, and hand the credentials over after it.
 * differs: routers that do not verify tokens themselves accept none of the original.
 */
export async function keepAccessToken(
  tx: Tx,
  { apiSessionId, token, expiresAt }: NewAccessToken,
): Promise<void> {
  await tx.query(
    sql`
    with surplus as (
         delete from access_token
          where id in (select id from access_token
                        where api_session_id = ${apiSessionId}
                        order by coalesce(seen_at > now() - ${TOKEN_IN_USE}, false) desc, id desc
                       offset ${ACCESS_TOKENS - 1}))
  insert into access_token (api_session_id, token, expires_at) values (${apiSessionId}, ${token}, ${expiresAt})`,
    'keep-access-token',
  )
}

/** Removes tokens that no connection uses any more: a page of them. */
export const removeUnusedTokens = (db: Db) =>
  db.query(sql`
    delete from access_token
     where id in (select id from access_token
                   where expires_at < now() - ${TOKEN_UNUSED} and (seen_at is null or seen_at < now() - ${TOKEN_UNUSED})
                   limit ${REMOVED_TOKENS} for update skip locked)`)

export const removeOldRevocations = (db: Db) =>
  db.query(sql`
    delete from revoked_api_session
     where id in (select id from revoked_api_session
                   where expires_at <= now() limit ${REMOVED_TOKENS} for update skip locked)`)

/** Stores that routers have connections under these tokens. Unknown ids have no effect. */
export async function markTokensSeen(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await tx.query(
    sql`
    with seen as ( -- in one order: several replicas report
         select id from access_token
          where id = any(${ids}::bigint[]) and (seen_at is null or seen_at < now() - ${SEEN_EVERY})
          order by id for no key update)
  update access_token set seen_at = now() from seen where access_token.id = seen.id`,
    'mark-tokens-seen',
  )
}

/** What is stored of the tokens for a code, besides their API session. */
export interface FirstTokens {
  readonly grant: Pick<
    TokenFacts,
    'scopes' | 'nonce' | 'loginFingerprints' | 'envInfo' | 'sdkInfo' | 'authTimeSeconds'
  >
  readonly accessToken: string
  readonly accessExpiresAtSeconds: number
  /** By the id in its claim jti. */
  readonly refresh?: { readonly id: string; readonly expiresAtSeconds: number } | undefined
}

/** Further parts of the statement that inserts the API session `s` for `login`, each after a comma. */
export const firstTokenRows = ({
  grant,
  accessToken,
  accessExpiresAtSeconds,
  refresh,
}: FirstTokens): Sql => sql`,
         granted as (
         insert into oidc_grant (api_session_id, scopes, nonce, fingerprints, env_info, sdk_info, auth_time,
                                 code_digest, code_challenge)
         select s.id, ${grant.scopes}::text[], ${grant.nonce}, ${grant.loginFingerprints}::text[],
                ${jsonOf(grant.envInfo)}::jsonb, ${jsonOf(grant.sdkInfo)}::jsonb,
                to_timestamp(${grant.authTimeSeconds}::float8), login.code_digest, login.code_challenge
           from s, login),
         accessible as (
         insert into access_token (api_session_id, token, expires_at)
         select s.id, ${accessToken}, to_timestamp(${accessExpiresAtSeconds}::float8) from s)${refreshRow(refresh)}`

const refreshRow = (refresh: FirstTokens['refresh']): Sql =>
  refresh
    ? sql`,
         refreshable as (
         insert into refresh_token (id, api_session_id, expires_at)
         select ${refresh.id}::uuid, s.id, to_timestamp(${refresh.expiresAtSeconds}::float8) from s)`
    : sql``

const jsonOf = (info: object | null): string | null => (info ? JSON.stringify(info) : null)

export interface NewCertificate {
  readonly id: string
  readonly leaf: X509Certificate
  /** The leaf, followed by its chain where that is stored. */
  readonly pem: string
}

/** The caller adds a `from` that names the session `s`. */
export const insertCertificate = ({ id, leaf, pem }: NewCertificate): Sql => sql`
  insert into api_session_certificate (id, api_session_id, subject, fingerprint, certificate, valid_from, valid_to)
  select ${id}, s.id, ${subjectTextOf(leaf)}, ${fingerprintOf(leaf)}, ${pem},
         ${new Date(leaf.validFrom)}, ${new Date(leaf.validTo)}`

/** Undefined: the session has ended. */
export async function addSessionCertificate(
  tx: Tx,
  { apiSessionId, ...certificate }: NewCertificate & { readonly apiSessionId: string },
): Promise<RowChange | undefined> {
  const insert = sql`
    ${insertCertificate(certificate)}
      from (select id from api_session where id = ${apiSessionId} for key share) s`
  return (await insertRows(tx, apiSessionCertificate, insert))[0]
}

/** Removes a certificate from all sessions. */
export const removeSessionCertificates = (tx: Tx, fingerprint: string | null): Promise<RowChange[]> =>
  deleteRows(tx, apiSessionCertificate, sql`fingerprint = ${fingerprint}`)
