import { randomUUID } from 'node:crypto'
import { apiSessionCertificate } from '@overlay/model'
import { newId } from '@overlay/store/kind-store'
import { batch, type Db } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { Leaf } from '../domain/leaf.js'
import {
  endOfToken,
  lockedFirst,
  type NewSession,
  type OpenedSession,
  sessionColumns,
} from './api-sessions.js'
import { hasPassword } from './authenticators.js'
import { idsOfWords, lockTypes } from './config-types.js'
import { type ClientInfo, infoDiffers } from './identities.js'

/** What all sessions of a batch have. */
interface Common {
  readonly ipAddress: string
  /** By id or name. */
  readonly configTypes: readonly string[]
  readonly info?: ClientInfo | undefined
}

/** A login by a certificate that leads to an authority of the network. */
export interface CertificateLogin extends Common {
  readonly leaf: Leaf
  readonly now: Date
}

type PasswordLogin = Omit<NewSession, 'bearer' | 'certificate' | 'certifyingCaId' | 'signerId'>

/**
 * Opens sessions: logins that run at the same time share one statement. Resolves to undefined where it leaves a login
 * out: the rules refuse it, a row that it needs is locked by a transaction that may change it, or it is not of the usual
 * form. A statement of its own decides then. So no login waits for the locks of another.
 */
export interface SessionBatches {
  /** Looks the authenticator up, and applies the rules of its auth policy. */
  byCertificate(login: CertificateLogin): Promise<OpenedSession | undefined>
  /** For an authenticator whose password has matched. */
  byPassword(session: PasswordLogin): Promise<OpenedSession | undefined>
}

export function openSessionBatches(db: Db): SessionBatches {
  const byCertificate = sessionBatch(db, {
    name: 'open-sessions-by-certificate',
    method: 'cert',
    authenticator: sql`a.fingerprint = entry.fingerprint`,
    // a token as the second factor is verified before the session is opened
    policy: sql`
      p.primary_cert_allowed and p.secondary_require_ext_jwt_signer is null
      and (entry.is_current or (entry.has_begun and p.primary_cert_allow_expired_certs))`,
  })
  const byPassword = sessionBatch(db, {
    name: 'open-sessions-by-password',
    method: 'updb',
    authenticator: sql`
      a.id = entry.authenticator_id and a.identity_id = entry.identity_id
      and ${hasPassword(sql`entry.password`, sql`a`)} and a.fingerprint is not distinct from entry.fingerprint`,
    policy: sql`true`, // it has been checked in the course of the login
  })
  return {
    byCertificate: async (login) =>
      isUsual(login) ? byCertificate(entryOf(login, certificateOf(login))) : undefined,
    byPassword: async (session) =>
      isUsual(session) ? byPassword(entryOf(session, passwordOf(session))) : undefined,
  }
}

/** Words of clients are part of a JSON list, which cannot contain every text. */
const isUsual = ({ configTypes }: Common): boolean => configTypes.every((word) => !/[\0\p{Cs}]/u.test(word))

const certificateOf = ({ leaf, now }: CertificateLogin) => ({
  fingerprint: leaf.fingerprint,
  has_begun: leaf.validFrom <= now,
  is_current: leaf.validFrom <= now && now <= leaf.validTo,
  certificate_id: newId(apiSessionCertificate.ids),
  subject: leaf.subject,
  pem: leaf.pem,
  valid_from: leaf.validFrom,
  valid_to: leaf.validTo,
})

const passwordOf = ({ identityId, authenticatorId, password, fingerprint, second }: PasswordLogin) => ({
  identity_id: identityId,
  authenticator_id: authenticatorId,
  password,
  fingerprint,
  second_signer_id: second?.signerId,
  second_until_ms: second?.untilMs,
})

const entryOf = ({ ipAddress, configTypes, info }: Common, proof: object) => ({
  id: newId('cuid'),
  token: randomUUID(),
  ip_address: ipAddress,
  words: configTypes,
  env: info?.env,
  sdk: info?.sdk,
  ...proof,
})

type Entry = ReturnType<typeof entryOf>

interface Batch {
  readonly name: string
  readonly method: NewSession['method']
  /** Finds the authenticator `a` of an entry. */
  readonly authenticator: Sql
  /** What policy `p` must allow. */
  readonly policy: Sql
}

const entries = (list: string): Sql => sql`
  select * from jsonb_to_recordset(${list}::jsonb) as list (
         id text, token text, ip_address text, words text[], env text, sdk text, identity_id text,
         authenticator_id text, password text, fingerprint text, second_signer_id text, second_until_ms float8,
         has_begun boolean, is_current boolean, certificate_id text, subject text, pem text,
         valid_from timestamptz, valid_to timestamptz)`

const allWords = sql`array(select unnest(words) from entry)`

/**
 * As `openSession`, but rows that are locked are left out: a deadlock is not possible. Rows are found by their keys, one by
 * one: the planner expects 100 entries, and would read whole tables to join them.
 */
function sessionBatch(
  db: Db,
  { name, method, authenticator, policy }: Batch,
): (entry: Entry) => Promise<OpenedSession | undefined> {
  const statement = (list: string): Sql => sql`
    with entry as materialized (${entries(list)}),
         type as (${lockTypes(allWords)}),
         proof as (
         select entry.id as session_id, a.*
           from entry
          cross join lateral (
                select a.id as proof_id, a.identity_id as person_id, a.is_issued_by_network
                  from authenticator a where ${authenticator} for share skip locked) as a
          where true ${lockedFirst}),
         person as (
         select i.*, proof.session_id, proof.proof_id, proof.is_issued_by_network
           from proof
          cross join lateral (
                select * from identity
                 where id = proof.person_id and (disabled_at is null or disabled_until <= clock_timestamp())
                   for share skip locked) as i),
         s as (
         insert into api_session (id, token, token_digest, identity_id, authenticator_id, ip_address, config_types,
                                  is_mfa_required, is_cert_extendable, method, second_signer_id, second_token_until)
         select entry.id, entry.token, sha256(convert_to(entry.token, 'UTF8')), person.id, person.proof_id,
                entry.ip_address,
                case when 'all' = any(entry.words) then array['all'] else ${idsOfWords(sql`entry.words`)} end,
                exists (select from second_factor where identity_id = person.id and is_verified),
                ${method} = 'cert' and person.is_issued_by_network, ${method}, entry.second_signer_id,
                ${endOfToken(sql`entry.second_signer_id`, sql`entry.second_until_ms`)}
           from person
           join entry on entry.id = person.session_id
           join auth_policy p on p.id = person.auth_policy_id
          where ${policy}
      returning *),
         certified as (
         insert into api_session_certificate (id, api_session_id, subject, fingerprint, certificate, valid_from,
                                              valid_to)
         select entry.certificate_id, s.id, entry.subject, entry.fingerprint, entry.pem, entry.valid_from,
                entry.valid_to
           from s join entry using (id) where entry.pem is not null)
  select ${sessionColumns}, ${infoDiffers(sql`i`, { env: sql`entry.env`, sdk: sql`entry.sdk` })} as "hasNewInfo"
    from s
    join entry on entry.id = s.id
    join person i on i.session_id = s.id
    join auth_policy p on p.id = i.auth_policy_id
   cross join stream`
  return batch(async (list: readonly Entry[]) => {
    const { rows } = await db.query<OpenedSession>(statement(JSON.stringify(list)), name)
    const opened = new Map(rows.map((row) => [row.id, row]))
    return list.map(({ id }) => opened.get(id))
  })
}
