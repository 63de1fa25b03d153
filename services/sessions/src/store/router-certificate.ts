import type { Context } from '@overlay/rpc'
import type { ChangeLog } from '@overlay/store/change-log'
import type { Db } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { MAX_FORMER } from '../limits.js'
import { updateRouter } from './router.js'

/** The client certificate of a router. */
export interface RouterCertificate {
  readonly certPem: string
  /** SHA-1, hex. */
  readonly fingerprint: string
}

export interface CertifiedRouter {
  readonly id: string
  readonly name: string
  readonly fingerprint: string
}

/** The router with this column, unless it is disabled or has to enroll. */
export async function certifiedRouter(db: Db, column: Sql): Promise<CertifiedRouter | undefined> {
  const { rows } = await db.query<CertifiedRouter>(sql`
    select id, name, fingerprint from router where ${column} and is_verified and not disabled`)
  return rows[0]
}

const PAGE = 500

/** The client certificates of all routers that are not disabled. */
export async function* storedCertificates(
  db: Db,
): AsyncGenerator<{ readonly id: string; readonly name: string; readonly certPem: string }> {
  for (let after = ''; ; ) {
    const { rows } = await db.query<{ id: string; name: string; certPem: string }>(sql`
      select id, name, cert_pem as "certPem" from router
       where id > ${after} and is_verified and not disabled and cert_pem is not null order by id limit ${PAGE}`)
    yield* rows
    const last = rows.at(-1)
    if (!last || rows.length < PAGE) return
    after = last.id
  }
}

/** SHA-1 of the client certificate that the router has not verified yet. */
export async function unverifiedFingerprint(db: Db, routerId: string): Promise<string | undefined> {
  const { rows } = await db.query<{ fingerprint: string | null }>(
    sql`select unverified_fingerprint as fingerprint from router where id = ${routerId}`,
  )
  return rows[0]?.fingerprint ?? undefined
}

/** Replaces the certificate of a router. Undefined: it has another one by now. */
export const replaceCertificate = (
  changeLog: ChangeLog,
  context: Context,
  { id, fingerprint }: CertifiedRouter,
  next: RouterCertificate,
) =>
  updateRouter(
    changeLog,
    context,
    sql`id = ${id} and fingerprint = ${fingerprint} and is_verified`,
    sql`
      fingerprint = ${next.fingerprint}, cert_pem = ${next.certPem}, former_fingerprints = '{}',
      unverified_fingerprint = null, unverified_cert_pem = null`,
  )

/** Saves a certificate that replaces that of the router once it is verified. */
export const saveUnverified = (
  changeLog: ChangeLog,
  context: Context,
  { id, fingerprint }: CertifiedRouter,
  next: RouterCertificate,
) =>
  updateRouter(
    changeLog,
    context,
    sql`id = ${id} and fingerprint = ${fingerprint} and is_verified`,
    sql`unverified_fingerprint = ${next.fingerprint}, unverified_cert_pem = ${next.certPem}`,
  )

/**
 * The unverified certificate replaces that of the router, which becomes a former one. Undefined: the router has no such
 * certificate.
 */
export const verifyCertificate = (
  changeLog: ChangeLog,
  context: Context,
  routerId: string,
  fingerprint: string,
) =>
  updateRouter(
    changeLog,
    context,
    sql`id = ${routerId} and unverified_fingerprint = ${fingerprint} and is_verified`,
    sql`
      fingerprint = unverified_fingerprint, cert_pem = unverified_cert_pem, unverified_fingerprint = null,
      unverified_cert_pem = null, former_fingerprints = (array_prepend(fingerprint, former_fingerprints))[1:${MAX_FORMER}]`,
  )

/**
 * A router has connected with this certificate, so it has stored it: former ones become invalid, and an unverified one
 * is verified. Undefined: the router has no such certificate.
 */
export const confirmCertificate = (
  changeLog: ChangeLog,
  context: Context,
  routerId: string,
  fingerprint: string,
) =>
  updateRouter(
    changeLog,
    context,
    sql`id = ${routerId} and ${fingerprint} in (fingerprint, unverified_fingerprint) and is_verified`,
    sql`
      fingerprint = ${fingerprint}, former_fingerprints = '{}',
      cert_pem = case when fingerprint = ${fingerprint} then cert_pem else unverified_cert_pem end,
      unverified_fingerprint = nullif(unverified_fingerprint, ${fingerprint}),
      unverified_cert_pem = case when unverified_fingerprint = ${fingerprint} then null else unverified_cert_pem end`,
  )
