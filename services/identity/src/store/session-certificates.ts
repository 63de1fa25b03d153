import type { X509Certificate } from 'node:crypto'
import { apiSessionCertificate } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { deleteRows, insertRows } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import { fingerprintOf } from '@overlay/x509'
import sql, { type Sql } from 'sql-template-tag'
import { subjectTextOf } from '../domain/leaf.js'

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
