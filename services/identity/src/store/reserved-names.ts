import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql, { raw } from 'sql-template-tag'

/** A name that a router is about to get. */
export interface RouterName {
  readonly routerId: string
  readonly name: string
}

/** Longer than a write of a router may take. */
const RESERVED = sql`interval '30 seconds'`

const key = raw(`hashtext(current_schema() || ' identity names')`)

/** From now to the commit no name becomes reserved: to be called before a transaction looks for a free name. */
export const shareNames = (tx: Tx) => tx.query(sql`select pg_advisory_xact_lock_shared(${key})`)

/** Whether an identity has the name, or a router is about to get it. `exceptId`: the identity of that router. */
export async function isNameTaken(db: Db, name: string, exceptId = ''): Promise<boolean> {
  const { rows } = await db.query<{ isTaken: boolean }>(sql`
    select exists (select from identity where name = ${name} and id <> ${exceptId})
        or exists (select from reserved_name where name = ${name} and router_id <> ${exceptId}) as "isTaken"`)
  return onlyRow(rows).isTaken
}

/** Whether the identity of a router has the name. */
export async function hasRouter(db: Db, name: string): Promise<boolean> {
  const { rowCount } = await db.query(sql`select from identity where name = ${name} and type = 'Router'`)
  return rowCount === 1
}

/** Waits for all transactions that give names to identities. False: the name is taken. */
export async function reserveName(tx: Tx, { routerId, name }: RouterName): Promise<boolean> {
  await tx.query(sql`select pg_advisory_xact_lock(${key})`)
  if (await isNameTaken(tx, name, routerId)) return false
  await tx.query(sql`
    insert into reserved_name (name, router_id, until) values (${name}, ${routerId}, now() + ${RESERVED})
        on conflict (name) do update set until = excluded.until`)
  return true
}

export const releaseName = (db: Db, { routerId, name }: RouterName) =>
  db.query(sql`delete from reserved_name where name = ${name} and router_id = ${routerId}`)

/** Reservations whose routers have the name by now, or never get it. */
export async function lapsedNames(db: Db): Promise<readonly RouterName[]> {
  const { rows } = await db.query<RouterName>(sql`
    select router_id as "routerId", name from reserved_name where until < now()`)
  return rows
}

/** Removes reservations that have not been renewed. */
export const removeLapsedNames = (db: Db, names: readonly RouterName[]) =>
  db.query(sql`
    delete from reserved_name
     where until < now()
       and (name, router_id) in (select * from unnest(${names.map(({ name }) => name)}::text[],
                                                      ${names.map(({ routerId }) => routerId)}::text[]))`)
