import { enrollment, type RowOf } from '@overlay/model'
import { type Actor, batchInserter, type ChangeLog, type RowChange } from '@overlay/platform/change-log'
import {
  type AnyRow,
  changeOf,
  columnsOf,
  columnValues,
  plainOfNew,
  rowOf,
} from '@overlay/platform/kind-store'
import type { Db, Tx } from '@overlay/platform/postgres'
import type { Position } from '@overlay/rpc'
import sql, { raw, type Sql } from 'sql-template-tag'
import type { Enrollment, Method } from '../domain/enrollment.js'

/** As stored: all methods, and always with an end. */
export type StoredEnrollment = RowOf<typeof enrollment> & {
  readonly method: Method
  readonly expiresAt: Date
}

const columns = columnsOf(enrollment)
const storedOf = (row: Parameters<typeof rowOf>[1]) => rowOf(enrollment, row) as unknown as StoredEnrollment
const change = (id: string, before: StoredEnrollment | null, after: StoredEnrollment | null): RowChange =>
  changeOf(enrollment, id, before as AnyRow | null, after as AnyRow | null)

async function findWhere(db: Db, which: Sql, name?: string): Promise<readonly StoredEnrollment[]> {
  const { rows } = await db.query(sql`select ${columns} from enrollment where ${which}`, name)
  return rows.map(storedOf)
}

export const findByToken = async (db: Db, token: string): Promise<StoredEnrollment | undefined> =>
  (await findWhere(db, sql`token = ${token}`, 'enrollment-by-token'))[0]

/** Of many entities at once: identities, or routers. */
export const findOf = (
  db: Db,
  owner: 'identity_id' | 'edge_router_id' | 'transit_router_id',
  ids: readonly string[],
): Promise<readonly StoredEnrollment[]> => findWhere(db, sql`${raw(owner)} = any(${ids})`)

export const isOutstanding = async (db: Db, identityId: string, method: string): Promise<boolean> =>
  (await findWhere(db, sql`identity_id = ${identityId} and method = ${method}`, 'outstanding-enrollment'))
    .length > 0

const listed = (made: Enrollment): object => columnValues(enrollment, made.id, made, {})

/** Those that are not there and have not ended, while none of their method is outstanding and their authority lives. */
const insert = (list: string, also = sql`true`): Sql => sql`
  insert into enrollment
         (id, token, method, identity_id, edge_router_id, transit_router_id, ca_id, username, expires_at, jwt)
  select id, token, method, identity_id, edge_router_id, transit_router_id, ca_id, username, expires_at, jwt
    from jsonb_to_recordset(${list}::jsonb) as made (
         id text, token text, method text, identity_id text, edge_router_id text, transit_router_id text,
         ca_id text, username text, expires_at timestamptz, jwt text, timeline uuid, number bigint)
   where not exists (select from ended_enrollment where ended_enrollment.id = made.id)
     and (made.ca_id is null or exists (select from ca where ca.id = made.ca_id for key share))
     and ${also}
      on conflict do nothing`

export async function insertEnrollments(tx: Tx, made: readonly Enrollment[]): Promise<readonly RowChange[]> {
  const list = JSON.stringify(made.map(listed))
  const { rows } = await tx.query(sql`${insert(list)} returning ${columns}`, 'insert-enrollments')
  return rows.map((row) => change(String(row.id), null, storedOf(row)))
}

/** identity has not been followed so far: what it said afterwards, of the end of its owner too, comes later. */
const isAhead = sql`
  exists (select from followed
           where schema = 'identity' and followed.timeline = made.timeline and followed.number < made.number
             for share)`

/** Makes what is wanted at a position of identity before it is followed there. False: it has been, or is no position. */
export function enrollmentCreator(
  changeLog: ChangeLog,
): (made: Enrollment, position: Position, by: Actor) => Promise<boolean> {
  const create = batchInserter(changeLog, enrollment.kind, (list) => insert(list, isAhead))
  return async (made, position, by) => {
    const plain = plainOfNew(enrollment, made.id, made, {})
    const columns = { ...listed(made), ...position }
    return (await create({ id: made.id, columns, plain, by })) !== undefined
  }
}

/** Deletes, and remembers. */
async function end(tx: Tx, which: Sql, name?: string): Promise<readonly RowChange[]> {
  const { rows } = await tx.query(
    sql`
    with gone as (
         delete from enrollment where ${which} returning ${columns}),
         ended as (
         insert into ended_enrollment (id, owner_id, owner_kind)
         select gone.id, owner.id, owner.kind
           from gone cross join lateral (values
                ('identities', identity_id), ('edge-routers', edge_router_id), ('transit-routers', transit_router_id)
                ) as owner (kind, id)
          where owner.id is not null
             on conflict do nothing)
  select ${columns} from gone`,
    name,
  )
  return rows.map((row) => change(String(row.id), storedOf(row), null))
}

/** For callers that delete the row themselves. */
export async function rememberEnded(tx: Tx, id: string, kind: OwnerKind, ownerId: string): Promise<void> {
  await tx.query(sql`
    insert into ended_enrollment (id, owner_id, owner_kind) values (${id}, ${ownerId}, ${kind})
        on conflict do nothing`)
}

export const endEnrollments = (tx: Tx, ids: readonly string[]): Promise<readonly RowChange[]> =>
  end(tx, sql`id = any(${ids})`, 'end-enrollments')

/** Nobody can redeem them any more. */
export const endOfCa = (tx: Tx, caId: string): Promise<readonly RowChange[]> => end(tx, sql`ca_id = ${caId}`)

/** A router has one enrollment, or none. */
export const endOfRouterBut = (tx: Tx, id: string, enrollmentId = ''): Promise<readonly RowChange[]> =>
  end(tx, sql`(edge_router_id = ${id} or transit_router_id = ${id}) and id <> ${enrollmentId}`)

/** Routers that have exactly the enrollment that they name, or none where they name none. */
export async function routersInStep(
  db: Db,
  routers: readonly { readonly id: string; readonly enrollmentId: string | null }[],
): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: string }>(
    sql`
    select router.id
      from unnest(${routers.map(({ id }) => id)}::text[],
                  ${routers.map(({ enrollmentId }) => enrollmentId)}::text[]) as router (id, enrollment_id)
     where not exists (
           select from enrollment
            where (edge_router_id = router.id or transit_router_id = router.id)
              and enrollment.id is distinct from router.enrollment_id)
       and (router.enrollment_id is null
            or exists (select from enrollment where enrollment.id = router.enrollment_id)
            or exists (select from ended_enrollment where ended_enrollment.id = router.enrollment_id))`,
    'routers-in-step',
  )
  return new Set(rows.map(({ id }) => id))
}

/** Columns of an enrollment that name its owner. */
export const ownerColumns = {
  identities: raw('identity_id'),
  'edge-routers': raw('edge_router_id'),
  'transit-routers': raw('transit_router_id'),
}
export type OwnerKind = keyof typeof ownerColumns
export const ownerKinds: readonly OwnerKind[] = ['identities', 'edge-routers', 'transit-routers']

/**
 * The owners are gone: nothing will report their enrollments again. The kind matters, because a router and the
 * identity of its tunneler have the same id.
 */
export async function endOfOwners(
  tx: Tx,
  kind: OwnerKind,
  ids: readonly string[],
): Promise<readonly RowChange[]> {
  const changes = await end(tx, sql`${ownerColumns[kind]} = any(${ids})`)
  await tx.query(sql`
    delete from ended_enrollment
     where owner_id = any(${ids}) and (owner_kind = ${kind} or owner_kind is null)`)
  return changes
}

/** Selects the ids of the owners that are named here. */
export const namedOwners = (kind: OwnerKind): Sql => sql`
  select ${ownerColumns[kind]} as id from enrollment where ${ownerColumns[kind]} is not null
   union select owner_id from ended_enrollment where owner_kind = ${kind}`

/** Another token and another end. */
export async function renewEnrollment(
  tx: Tx,
  id: string,
  renew: (known: StoredEnrollment) => Promise<Enrollment>,
): Promise<readonly RowChange[]> {
  const [before] = await findWhere(tx, sql`id = ${id} for update`)
  if (!before) return []
  const { token, jwt, expiresAt } = await renew(before)
  const { rows } = await tx.query(sql`
    update enrollment
       set token = ${token}, jwt = ${jwt}, expires_at = ${expiresAt}, claimed_until = null, claim_hash = null,
           updated_at = clock_timestamp()
     where id = ${id}
 returning ${columns}`)
  return rows.map((row) => change(id, before, storedOf(row)))
}

const CLAIM_SECONDS = 15

/** While a claim lives everybody else is refused; when it has run out anybody with the token may claim anew. */
export async function claim(db: Db, { id, token }: Enrollment, hash: string): Promise<boolean> {
  const { rows } = await db.query(
    sql`
    update enrollment
       set claimed_until = clock_timestamp() + make_interval(secs => ${CLAIM_SECONDS}), claim_hash = ${hash}
     where id = ${id} and token = ${token} and (claimed_until is null or claimed_until < clock_timestamp())
 returning id`,
    'claim-enrollment',
  )
  return rows.length > 0
}

/** Nothing came of it: the next may try at once. */
export async function release(db: Db, { id }: Enrollment, hash: string): Promise<void> {
  await db.query(sql`
    update enrollment set claimed_until = null, claim_hash = null where id = ${id} and claim_hash = ${hash}`)
}
