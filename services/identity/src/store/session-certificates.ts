import type { X509Certificate } from 'node:crypto'
import { apiSessionCertificate } from '@overlay/model'
import type { RowChange } from '@overlay/platform/change-log'
import { changeOf, columnsOf, rowOf } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import { fingerprintOf } from '@overlay/x509'
import sql, { type Sql } from 'sql-template-tag'
import { subjectTextOf } from '../domain/subject-text.js'

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
  const { rows } = await tx.query(sql`
    ${insertCertificate(certificate)}
      from (select id from api_session where id = ${apiSessionId} for key share) s
 returning ${columnsOf(apiSessionCertificate)}`)
  return (
    rows[0] && changeOf(apiSessionCertificate, certificate.id, null, rowOf(apiSessionCertificate, rows[0]))
  )
}

/** Removes a certificate from all sessions. */
export async function removeSessionCertificates(tx: Tx, fingerprint: string | null): Promise<RowChange[]> {
  const { rows } = await tx.query(sql`
    delete from api_session_certificate where fingerprint = ${fingerprint}
 returning ${columnsOf(apiSessionCertificate)}`)
  return rows.map((stored) => {
    const row = rowOf(apiSessionCertificate, stored)
    return changeOf(apiSessionCertificate, row.id, row, null)
  })
}
