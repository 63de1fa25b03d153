import { createHash } from 'node:crypto'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { Progress } from '../domain/oidc-login.js'
import { LOGIN_SECONDS, LOGINS_OF_SOURCE, UNFINISHED_LOGINS } from '../limits.js'
import { isMethodAllowed, type NewSession } from './api-sessions.js'
import { fingerprintsOf } from './session-credentials.js'

/** An authorization request. */
export interface NewLogin {
  readonly id: string
  readonly source: string
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly state: string
  readonly nonce: string
  readonly codeChallenge: string
  readonly configTypes: readonly string[]
}

/** What the first factor has proven, and what the API session and its tokens take from it. */
export interface FirstFactor
  extends Pick<
    NewSession,
    | 'identityId'
    | 'authenticatorId'
    | 'method'
    | 'password'
    | 'fingerprint'
    | 'certifyingCaId'
    | 'signerId'
    | 'isCertExtendable'
    | 'ipAddress'
  > {
  /** PEM of the client certificate, of a login by certificate. */
  readonly certificate: string | null
  readonly configTypes: readonly string[]
  /** Of its chain, leaf first. */
  readonly fingerprints: readonly string[]
  readonly envInfo: object | null
  readonly sdkInfo: object | null
  readonly atMs: number
}

/** A login that is not finished. */
export interface StoredLogin extends Progress {
  readonly id: string
  readonly clientId: string
  readonly redirectUri: string
  readonly state: string
  /** Null: not identified. */
  readonly identityId: string | null
  readonly identityName: string | null
  /** Null: no browser has presented the first factor. */
  readonly browserDigest: Buffer | null
}

/** A login that has a code. */
export interface CodedLogin extends StoredLogin {
  readonly identityId: string
  readonly isAdmin: boolean
  readonly externalId: string | null
  readonly scopes: readonly string[]
  readonly nonce: string
  readonly codeChallenge: string
  readonly configTypes: readonly string[]
  /** Of the certificates of the identity. */
  readonly fingerprints: readonly string[]
  readonly mayCertsExpire: boolean
  readonly firstFactor: FirstFactor
}

export const browserDigestOf = (browser: string): Buffer | null =>
  browser === '' ? null : createHash('sha256').update(browser).digest()

export const codeDigestOf = (code: string): Buffer => createHash('sha256').update(code).digest()

/** Stores a login, and deletes the oldest ones of its network beyond the limit. */
export async function insertLogin(db: Db, login: NewLogin): Promise<void> {
  await db.query(
    sql`
    with crowded as (
         delete from oidc_login
          where id in (select id from oidc_login
                        where id in (select id from oidc_login where source = ${login.source}
                                      order by created_at desc offset ${LOGINS_OF_SOURCE - 1} limit 100)
                          for update skip locked))
    insert into oidc_login (id, source, client_id, redirect_uri, scopes, state, nonce, code_challenge, config_types,
                            expires_at)
    values (${login.id}, ${login.source}, ${login.clientId}, ${login.redirectUri}, ${login.scopes}, ${login.state},
            ${login.nonce}, ${login.codeChallenge}, ${login.configTypes}, ${soon})`,
    'insert-oidc-login',
  )
}

const soon = sql`now() + ${LOGIN_SECONDS}::float8 * interval '1 second'`

/** Of login `l` and, once it is identified, its identity `i` with policy `p`. */
const columns = sql`
  l.id, l.client_id as "clientId", l.redirect_uri as "redirectUri", l.state, i.id as "identityId",
  i.name as "identityName", i.id is not null as "isIdentified",
  l.browser_digest as "browserDigest", l.is_mfa_complete as "isMfaComplete",
  (select id from external_jwt_signer where id = l.second_signer_id and enabled) as "secondSignerId",
  exists (select from second_factor where identity_id = i.id and is_verified) as "hasVerifiedFactor",
  json_build_object(
    'requireTotp', coalesce(p.secondary_require_totp, false),
    'requireExtJwtSigner', p.secondary_require_ext_jwt_signer,
    'externalAuthUrl', (
      select external_auth_url from external_jwt_signer where id = p.secondary_require_ext_jwt_signer)) as demands`

/** An identity that is disabled, or whose policy no longer allows the method, has presented nothing. */
const sourceOf = (login: Sql): Sql => sql`
  ${login} l
  cross join lateral (select l.first_factor ->> 'method' as method,
                             l.first_factor ->> 'authenticatorId' as authenticator_id) s
  left join (identity i join auth_policy p on p.id = i.auth_policy_id)
    on i.id = l.identity_id and (i.disabled_at is null or i.disabled_until <= now()) and ${isMethodAllowed}`

const source = sourceOf(sql`oidc_login`)

export const loginById = (db: Db, id: string): Promise<StoredLogin | undefined> =>
  oneLogin<StoredLogin>(
    db,
    sql`select ${columns} from ${source} where l.id = ${id} and l.code_digest is null and l.expires_at > now()`,
    'oidc-login-by-id',
  )

export const loginByCode = (db: Db, code: string): Promise<CodedLogin | undefined> =>
  oneLogin<CodedLogin>(
    db,
    sql`
    select ${columns}, i.is_admin or i.is_default_admin as "isAdmin", i.external_id as "externalId", l.scopes, l.nonce, l.code_challenge as "codeChallenge", l.config_types as "configTypes",
           ${fingerprintsOf(sql`i.id`)} as fingerprints, p.primary_cert_allow_expired_certs as "mayCertsExpire",
           l.first_factor as "firstFactor"
      from ${source}
     where l.code_digest = ${codeDigestOf(code)} and l.expires_at > now() and i.id is not null`,
    'oidc-login-by-code',
  )

async function oneLogin<Row extends StoredLogin>(db: Db, query: Sql, name: string): Promise<Row | undefined> {
  return (await db.query<Row & Record<string, unknown>>(query, name)).rows[0]
}

/** Records a first factor, which replaces an earlier one. Undefined: the login does not exist. */
export const identifyLogin = (
  db: Db,
  id: string,
  firstFactor: FirstFactor,
  browser: string,
): Promise<StoredLogin | undefined> =>
  oneLogin<StoredLogin>(
    db,
    sql`
    with changed as (
         update oidc_login
            set first_factor = ${JSON.stringify(firstFactor)}::jsonb, identity_id = ${firstFactor.identityId},
                browser_digest = ${browserDigestOf(browser)}, is_mfa_complete = false, second_signer_id = null
          where id = ${id} and ${unfinished} returning *)
    select ${columns} from ${sourceOf(sql`changed`)}`,
    'identify-oidc-login',
  )

/** Records a second factor of the identity. False: the login does not exist, or is of another identity meanwhile. */
export const passSecondFactor = (
  db: Db,
  id: string,
  identityId: string,
  passed: { readonly code: true } | { readonly signerId: string },
): Promise<boolean> =>
  changeLogin(
    db,
    'code' in passed ? sql`is_mfa_complete = true` : sql`second_signer_id = ${passed.signerId}`,
    sql`id = ${id} and identity_id = ${identityId}`,
  )

/** The second factor is removed that logins of the identity have passed. */
export const forgetCodes = (tx: Tx, identityId: string) =>
  tx.query(sql`
    update oidc_login set is_mfa_complete = false where identity_id = ${identityId} and is_mfa_complete`)

/** Ends a login that is complete, and stores its code. False: it does not exist, or another call was faster. */
export const finishLogin = (db: Db, { id, identityId }: StoredLogin, code: string): Promise<boolean> =>
  changeLogin(
    db,
    sql`code_digest = ${codeDigestOf(code)}, expires_at = ${soon}`,
    sql`id = ${id} and identity_id = ${identityId}`,
  )

async function changeLogin(db: Db, sets: Sql, which: Sql): Promise<boolean> {
  const { rowCount } = await db.query(sql`
    update oidc_login set ${sets} where ${which} and ${unfinished}`)
  return rowCount === 1
}

const unfinished = sql`code_digest is null and expires_at > now()`

/** Removes logins that have expired. Beyond the limit, networks with many lose the oldest of them. */
export async function removeOldLogins(db: Db): Promise<void> {
  await db.query(sql`
    delete from oidc_login
     where id in (select id from oidc_login where expires_at <= now() for update skip locked)`)
  await db.query(sql`
    with total as (select count(*) as logins, count(distinct source) as sources from oidc_login),
         crowded as (
         select id
           from total,
                (select id, row_number() over (partition by source order by created_at desc) as rank
                   from oidc_login) as numbered
          where logins > ${UNFINISHED_LOGINS} and rank > greatest(${UNFINISHED_LOGINS} / sources, 1))
    delete from oidc_login
     where id in (select id from oidc_login where id in (select id from crowded) for update skip locked)`)
}
