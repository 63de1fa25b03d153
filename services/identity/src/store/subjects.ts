import type { Db } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { Disabling } from '../domain/disabled.js'
import type { PasswordRules } from '../domain/passwords.js'
import { authenticatorOf } from './signers.js'

/** An identity with the rules of its auth policy. */
export interface Person extends Disabling {
  readonly identityId: string
  readonly identityName: string
  readonly identityType: string
  readonly externalId: string | null
  readonly isAdmin: boolean
  readonly isDefaultAdmin: boolean
  readonly authPolicyId: string
  readonly isCertAllowed: boolean
  readonly areExpiredCertsAllowed: boolean
  readonly isPasswordAllowed: boolean
  readonly maxAttempts: number
  readonly lockoutMinutes: number
  readonly passwordRules: PasswordRules
  readonly isTokenAllowed: boolean
  /** Signers whose tokens may log in. None: all. */
  readonly allowedSigners: readonly string[]
  /** The signer whose token must be presented as the second factor. */
  readonly requiredSigner: string | null
}

/** The identity of an authenticator, or of a certificate that an authority certifies. */
export interface Subject extends Person {
  readonly authenticatorId: string
  readonly method: string
  readonly username: string | null
  readonly password: string | null
  readonly certPem: string | null
  readonly fingerprint: string | null
  readonly isIssuedByNetwork: boolean
  /** There were wrong passwords since the last correct one. */
  readonly hasFailed: boolean
  /** The authority that issued the certificate, if it is not the network. */
  readonly caId: string | null
  /** The authority that certifies the identity, which has no authenticator then. */
  readonly certifyingCaId?: string
  /** The external id, if no authority is bound to it. */
  readonly unboundExternalId?: string
  /** The signer of the token that names the identity, which has no authenticator then. */
  readonly signerId?: string
}

const person = sql`
  i.id as "identityId", i.name as "identityName", i.type as "identityType",
  i.external_id as "externalId", i.is_admin as "isAdmin",
  i.is_default_admin as "isDefaultAdmin", i.auth_policy_id as "authPolicyId",
  i.disabled_at as "disabledAt", i.disabled_until as "disabledUntil",
  p.primary_cert_allowed as "isCertAllowed", p.primary_cert_allow_expired_certs as "areExpiredCertsAllowed",
  p.primary_updb_allowed as "isPasswordAllowed", p.primary_updb_max_attempts as "maxAttempts",
  p.primary_updb_lockout_duration_minutes as "lockoutMinutes",
  json_build_object(
    'minPasswordLength', p.primary_updb_min_password_length,
    'requireMixedCase', p.primary_updb_require_mixed_case,
    'requireNumberChar', p.primary_updb_require_number_char,
    'requireSpecialChar', p.primary_updb_require_special_char) as "passwordRules",
  p.primary_ext_jwt_allowed as "isTokenAllowed", p.primary_ext_jwt_allowed_signers as "allowedSigners",
  p.secondary_require_ext_jwt_signer as "requiredSigner"`

const subject = sql`
  a.id as "authenticatorId", a.method, a.username, a.password, a.cert_pem as "certPem", a.fingerprint,
  a.is_issued_by_network as "isIssuedByNetwork",
  a.ca_id as "caId",
  exists (select from login_attempt where authenticator_id = a.id) as "hasFailed"`

export const personOf = (db: Db, identityId: string): Promise<Person | undefined> =>
  onePerson(db, sql`i.id = ${identityId}`, 'person')

const personByExternalId = (db: Db, externalId: string): Promise<Person | undefined> =>
  onePerson(db, sql`i.external_id = ${externalId}`, 'person-by-external-id')

async function onePerson(db: Db, which: Sql, name: string): Promise<Person | undefined> {
  const { rows } = await db.query<Person>(
    sql`
    select ${person} from identity i join auth_policy p on p.id = i.auth_policy_id where ${which}`,
    name,
  )
  return rows[0]
}

export const subjectByFingerprint = (db: Db, fingerprint: string): Promise<Subject | undefined> =>
  oneSubject(db, sql`a.fingerprint = ${fingerprint}`, 'subject-by-fingerprint')

/** The members of an authenticator, where none is stored. */
const substitute = {
  isIssuedByNetwork: false,
  hasFailed: false,
  username: null,
  password: null,
  certPem: null,
  fingerprint: null,
} as const

/** The identity that a certificate of the authority names, unless its external id is bound to another authority. */
export async function subjectByExternalId(
  db: Db,
  externalId: string,
  caId: string,
): Promise<Subject | undefined> {
  const named = await personByExternalId(db, externalId)
  if (!named) return undefined
  const boundTo = await authorityOfExternalId(db, named.identityId, externalId)
  if (boundTo !== undefined && boundTo !== caId) return undefined
  return {
    ...named,
    ...substitute,
    authenticatorId: 'internal', // wire
    method: 'cert',
    caId,
    certifyingCaId: caId,
    ...(boundTo === undefined && { unboundExternalId: externalId }),
  }
}

/** The identity that a verified token of the signer names. */
export async function subjectOfToken(
  db: Db,
  { id: signerId, useExternalId }: { readonly id: string; readonly useExternalId: boolean },
  name: string,
): Promise<Subject | undefined> {
  const named = await (useExternalId ? personByExternalId(db, name) : personOf(db, name))
  if (!named) return undefined
  const proof = { authenticatorId: authenticatorOf(signerId), method: 'ext-jwt', caId: null, signerId }
  return { ...named, ...substitute, ...proof }
}

/** Selects subjects by their authenticator `a`. */
export const subjectsWhere = (which: Sql): Sql => sql`
    select ${subject}, ${person}
      from authenticator a
      join identity i on i.id = a.identity_id
      join auth_policy p on p.id = i.auth_policy_id
     where ${which}`

export const subjectById = (db: Db, authenticatorId: string): Promise<Subject | undefined> =>
  oneSubject(db, sql`a.id = ${authenticatorId}`, 'subject-by-id')

async function oneSubject(db: Db, which: Sql, name: string): Promise<Subject | undefined> {
  const { rows } = await db.query<Subject>(subjectsWhere(which), name)
  return rows[0]
}

/** The authority that is bound to this external id of the identity, if there is one. */
export async function authorityOfExternalId(
  db: Db,
  identityId: string,
  externalId: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ caId: string }>(
    sql`
    select ca_id as "caId" from external_id_authority
     where identity_id = ${identityId} and external_id = ${externalId}`,
    'authority-of-external-id',
  )
  return rows[0]?.caId
}

/** Binds an external id to the first authority that certifies it. False: another one is bound. */
export async function bindExternalId(
  db: Db,
  identityId: string,
  externalId: string,
  caId: string,
): Promise<boolean> {
  await db.query(sql`
    insert into external_id_authority (identity_id, external_id, ca_id)
    select identity.id, identity.external_id, known_ca.id
      from identity, known_ca
     where identity.id = ${identityId} and identity.external_id = ${externalId} and known_ca.id = ${caId}
       for key share
        on conflict (identity_id) do update set external_id = excluded.external_id, ca_id = excluded.ca_id
     where external_id_authority.external_id <> excluded.external_id`)
  return (await authorityOfExternalId(db, identityId, externalId)) === caId
}

/** For an identity whose external id changes: any authority may certify the new one. */
export async function unbindExternalId(db: Db, identityId: string): Promise<void> {
  await db.query(sql`delete from external_id_authority where identity_id = ${identityId}`)
}
