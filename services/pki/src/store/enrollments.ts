import type { Db, RowChange, Tx } from '@overlay/platform'
import sql, { raw, type Sql } from 'sql-template-tag'
import type { Enrollment, Method } from '../domain/enrollment.js'

interface Row {
  readonly id: string
  readonly token: string
  readonly method: Method
  readonly identity_id: string | null
  readonly edge_router_id: string | null
  readonly transit_router_id: string | null
  readonly ca_id: string | null
  readonly username: string | null
  readonly expires_at: Date
  readonly jwt: string
  readonly created_at: Date
}

export interface StoredEnrollment extends Enrollment {
  readonly createdAt: Date
}

const columns = raw(
  'id, token, method, identity_id, edge_router_id, transit_router_id, ca_id, username, expires_at, jwt, created_at',
)

const stored = (row: Row): StoredEnrollment => ({
  id: row.id,
  token: row.token,
  method: row.method,
  identityId: row.identity_id,
  edgeRouterId: row.edge_router_id,
  transitRouterId: row.transit_router_id,
  caId: row.ca_id,
  username: row.username,
  expiresAt: row.expires_at,
  jwt: row.jwt,
  createdAt: row.created_at,
})

/** As audit and followers see it: without token and JWT. */
const shown = ({ token, jwt, ...rest }: StoredEnrollment) => rest

const changeOf = (before: StoredEnrollment | null, after: StoredEnrollment | null): RowChange => {
  const { id } = (after ?? before) as StoredEnrollment
  const told = after && {
    identityId: after.identityId,
    edgeRouterId: after.edgeRouterId,
    method: after.method,
  }
  return { kind: 'enrollments', id, before: before && shown(before), after: after && shown(after), told }
}

export async function findByToken(db: Db, token: string): Promise<StoredEnrollment | undefined> {
  const { rows } = await db.query<Row>(sql`select ${columns} from enrollment where token = ${token}`)
  return rows[0] && stored(rows[0])
}

/** Of many entities at once: identities, or routers. */
export async function findOf(
  db: Db,
  owner: 'identity_id' | 'edge_router_id' | 'transit_router_id',
  ids: readonly string[],
): Promise<readonly StoredEnrollment[]> {
  const { rows } = await db.query<Row>(
    sql`select ${columns} from enrollment where ${raw(owner)} = any(${ids}) order by id`,
  )
  return rows.map(stored)
}

/** Stores those that are neither there nor ended, and of whose method nothing is outstanding. */
export async function insertEnrollment(tx: Tx, made: Enrollment): Promise<readonly RowChange[]> {
  const { rows } = await tx.query<Row>(sql`
    insert into enrollment
           (id, token, method, identity_id, edge_router_id, transit_router_id, ca_id, username, expires_at, jwt)
    select ${made.id}, ${made.token}, ${made.method}, ${made.identityId}, ${made.edgeRouterId}, ${made.transitRouterId},
           ${made.caId}, ${made.username}, ${made.expiresAt}::timestamptz, ${made.jwt}
     where not exists (select from ended_enrollment where id = ${made.id})
        on conflict do nothing
 returning ${columns}`)
  return rows.map((row) => changeOf(null, stored(row)))
}

/** Deletes, and remembers those of identities. */
async function end(tx: Tx, which: Sql): Promise<readonly RowChange[]> {
  const { rows } = await tx.query<Row>(sql`
    with gone as (
         delete from enrollment where ${which} returning ${columns}),
         ended as (
         insert into ended_enrollment (id, identity_id)
         select id, identity_id from gone where identity_id is not null
             on conflict do nothing)
  select ${columns} from gone`)
  return rows.map((row) => changeOf(stored(row), null))
}

export const endEnrollments = (tx: Tx, ids: readonly string[]): Promise<readonly RowChange[]> =>
  end(tx, sql`id = any(${ids})`)

export const endOfRouters = (tx: Tx, ids: readonly string[]): Promise<readonly RowChange[]> =>
  end(tx, sql`edge_router_id = any(${ids}) or transit_router_id = any(${ids})`)

/** The identities are gone: nobody will tell of their enrollments again. */
export async function endOfIdentities(tx: Tx, ids: readonly string[]): Promise<readonly RowChange[]> {
  const changes = await end(tx, sql`identity_id = any(${ids})`)
  await tx.query(sql`delete from ended_enrollment where identity_id = any(${ids})`)
  return changes
}

/** A new token and a new end. */
export async function renewEnrollment(
  tx: Tx,
  before: StoredEnrollment,
  { token, jwt, expiresAt }: Pick<Enrollment, 'token' | 'jwt' | 'expiresAt'>,
): Promise<readonly RowChange[]> {
  const { rows } = await tx.query<Row>(sql`
    update enrollment
       set token = ${token}, jwt = ${jwt}, expires_at = ${expiresAt}, claimed_until = null, claim_hash = null,
           updated_at = clock_timestamp()
     where id = ${before.id}
 returning ${columns}`)
  return rows.map((row) => changeOf(before, stored(row)))
}

const CLAIM_SECONDS = 15

/** While somebody's claim lives everybody else is refused; when it has run out anybody with the token may claim anew. */
export async function claim(db: Db, { id, token }: Enrollment, hash: string): Promise<boolean> {
  const { rows } = await db.query(sql`
    update enrollment
       set claimed_until = clock_timestamp() + make_interval(secs => ${CLAIM_SECONDS}), claim_hash = ${hash}
     where id = ${id} and token = ${token} and (claimed_until is null or claimed_until < clock_timestamp())
 returning id`)
  return rows.length > 0
}

/** Nothing came of it: the next may try at once. */
export async function release(db: Db, { id }: Enrollment, hash: string): Promise<void> {
  await db.query(sql`
    update enrollment set claimed_until = null, claim_hash = null where id = ${id} and claim_hash = ${hash}`)
}
