import type { RowChange } from '@overlay/store/change-log'
import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { isTokenRole, type KeyFacts, type KeyRole, type TokenRole } from '../domain/planned-key.js'

/** Excludes other writers of keys until the transaction ends. */
export async function lockKeys(tx: Tx): Promise<void> {
  await tx.query(sql`select pg_advisory_xact_lock(hashtextextended('pki keys', 0))`)
}

export const activate = (tx: Tx, key: KeyFacts, now: Date): Promise<RowChange> =>
  setState(tx, key, sql`state = 'active', active_at = ${now}`)

/** The private key of a root is deleted: from then on, nothing can be signed with it. */
export const retire = (tx: Tx, key: KeyFacts, now: Date): Promise<RowChange> =>
  setState(
    tx,
    key,
    sql`state = 'retired', retired_at = ${now}${key.role === 'root' ? sql`, private_key = null` : sql``}`,
  )

export async function remove(tx: Tx, key: KeyFacts): Promise<RowChange> {
  await tx.query(sql`delete from ${tableOf(key.role)} where id = ${key.id}`)
  return keyChange(key, null)
}

async function setState(tx: Tx, key: KeyFacts, assignments: Sql): Promise<RowChange> {
  const { rows } = await tx.query<Omit<KeyFacts, 'role'>>(
    sql`update ${tableOf(key.role)} set ${assignments} where id = ${key.id} returning ${stateColumns}`,
  )
  return keyChange(key, { ...onlyRow(rows), role: key.role })
}

const tableOf = (role: KeyRole): Sql => (isTokenRole(role) ? tokenTables[role] : sql`key`)

/** One for each role: replicas of the former release would sign with any active key of `token_key`. */
export const tokenTables: Readonly<Record<TokenRole, Sql>> = {
  token: sql`token_key`,
  session: sql`session_key`,
}

export const stateColumns = sql`
  id, state, source, created_at as "createdAt", active_at as "activeAt", retired_at as "retiredAt"`

/** `certificate`: PEM, where the change is about it. */
type Audited = KeyFacts & { readonly certificate?: string }

export function keyChange(before: Audited | null, after: Audited | null): RowChange {
  return {
    kind: 'keys',
    id: (after ?? before)?.id ?? '',
    before: before && auditOf(before),
    after: after && auditOf(after),
    payload: after && payloadOf(after),
  }
}

/** What followers get. */
const payloadOf = ({ role, state }: Pick<KeyFacts, 'role' | 'state'>): object => ({ role, state })

/** Without secrets and what else a row has. */
const auditOf = ({ id, role, state, source, createdAt, activeAt, retiredAt, certificate }: Audited) => ({
  ...{ id, role, state, source, createdAt, activeAt, retiredAt },
  ...(certificate !== undefined && { certificate }),
})

/** The payloads of all keys, for followers that load. */
export async function* keyPayloads(db: Db): AsyncIterable<{ readonly id: string; readonly json: object }> {
  const { rows } = await db.query<Pick<KeyFacts, 'id' | 'role' | 'state'>>(sql`
    
    select id, role, state from key union all select id, 'token', state from token_key
     union all select id, 'session', state from session_key order by id`)
  for (const row of rows) yield { id: row.id, json: payloadOf(row) }
}
