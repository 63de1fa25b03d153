import { authenticator, type RowOf } from '@overlay/model'
import { columnsOf, type Db, plainOf, type RowChange, rowOf, type Tx } from '@overlay/platform'
import { Fault, invalid } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'

export type Authenticator = RowOf<typeof authenticator>

export async function authenticatorById(db: Db, id: string): Promise<Authenticator | undefined> {
  const { rows } = await db.query(sql`select ${columnsOf(authenticator)} from authenticator where id = ${id}`)
  return rows[0] && (rowOf(authenticator, rows[0]) as unknown as Authenticator)
}

/** wire: one authenticator of each method by hand; enrollments may bring more. None for the identity of a router. */
export async function refuseSecond(
  db: Db,
  { identityId, identityType }: { readonly identityId: string; readonly identityType: string },
  method: string,
): Promise<void> {
  if (identityType === 'Router')
    throw invalid('identityId', 'router identities may not have authenticators', identityId)
  const { rows } = await db.query(sql`
    select from authenticator where identity_id = ${identityId} and method = ${method} limit 1`)
  if (rows.length > 0) throw new Fault('MAX_AUTHENTICATOR_METHODS_REACHED')
}

/** Takes authenticators away beside the uniform way, and tells it alike. */
export async function removeAuthenticators(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query(sql`
    delete from authenticator where ${which} returning ${columnsOf(authenticator)}`)
  return rows.map((stored) => {
    const row = rowOf(authenticator, stored)
    return {
      kind: authenticator.kind,
      id: row.id,
      before: plainOf(authenticator, row),
      after: null,
      told: null,
    }
  })
}
