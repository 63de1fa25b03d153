import type { Position } from '@overlay/rpc'
import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import type { Revocation, Scope } from '../domain/revocation.js'

/** Belongs in the transaction that saves the followed position: no create and no sweep sees one without the other. */
export async function recordRevocations(
  tx: Tx,
  schema: string,
  { timeline }: Position,
  revocations: readonly Revocation[],
): Promise<void> {
  if (revocations.length === 0) return
  await tx.query(
    sql`
    insert into revocation (schema, timeline, number, kind, entity_id, is_pending)
    select ${schema}, ${timeline}, number, kind, "id", "isPending"
      from jsonb_to_recordset(${JSON.stringify(revocations)}::jsonb)
        as (number bigint, kind text, "id" text, "isPending" boolean)`,
    'record-revocations',
  )
}

/** A scope with the revocations that it was read from. One that is recorded later requires another sweep. */
export interface PendingScope extends Scope {
  readonly revocationIds: readonly number[]
}

/** Scopes whose sweep has not begun, oldest first. */
export async function newScopes(db: Db, limit: number): Promise<PendingScope[]> {
  const { rows } = await db.query<PendingScope>(
    sql`
    select kind, entity_id as id, json_agg(revocation.id) as "revocationIds" from revocation
     where is_pending and not is_large
     group by kind, entity_id order by min(revocation.id) limit ${limit}`,
    'new-scopes',
  )
  return rows
}

export interface LargeScope extends PendingScope {
  /** The last session that was checked; empty: none. */
  readonly sweptTo: string
  /** The schemas of its revocations. */
  readonly schemas: readonly string[]
}

/**
 * A scope that is swept in pages, chosen at random so that none waits for another. Revocations that were recorded
 * during the sweep of their scope share the next sweep.
 */
export async function someLargeScope(db: Db): Promise<LargeScope | undefined> {
  const { rows } = await db.query<LargeScope>(
    sql`
    select kind, entity_id as id, swept_to as "sweptTo", json_agg(revocation.id) as "revocationIds",
           array_agg(distinct schema) as schemas
      from (select *, max(swept_to) over (partition by kind, entity_id) as furthest
              from revocation where is_pending and is_large) as revocation
     where swept_to = furthest
     group by kind, entity_id, swept_to order by random() limit 1`,
    'large-scope',
  )
  return rows[0]
}

const revocationsOf = (scopes: readonly PendingScope[]): Sql =>
  sql`id = any(${scopes.flatMap(({ revocationIds }) => revocationIds)}::bigint[])`

export async function markSwept(tx: Tx, scopes: readonly PendingScope[]): Promise<void> {
  if (scopes.length === 0) return
  await tx.query(sql`update revocation set is_pending = false where ${revocationsOf(scopes)}`, 'mark-swept')
}

export async function markLarge(tx: Tx, scopes: readonly PendingScope[]): Promise<void> {
  if (scopes.length === 0) return
  await tx.query(sql`update revocation set is_large = true where ${revocationsOf(scopes)}`, 'mark-large')
}

/** Saves how far a large scope is swept. */
export async function saveProgress(tx: Tx, scope: LargeScope): Promise<void> {
  await tx.query(
    sql`update revocation set swept_to = ${scope.sweptTo} where ${revocationsOf([scope])}`,
    'save-sweep',
  )
}

/** Whether revocations of other scopes are pending, or later ones of this scope. */
export async function othersArePending(db: Db, scope: PendingScope): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(
    sql`select exists (select from revocation where is_pending and not ${revocationsOf([scope])}) as found`,
    'other-revocations',
  )
  return onlyRow(rows).found
}

/** Replaces revocations of posture checks by revocations of the policies that require them. */
export async function replaceChecks(
  tx: Tx,
  checks: readonly PendingScope[],
  policyIds: readonly string[],
): Promise<void> {
  if (checks.length === 0) return
  await tx.query(
    sql`
    with replaced as (
         update revocation set is_pending = false where ${revocationsOf(checks)}
      returning schema, timeline, number)
    insert into revocation (schema, timeline, number, kind, entity_id, is_pending)
    select schema, timeline, max(number), 'policy', policy_id, true
      from replaced cross join unnest(${policyIds}::text[]) as policy_id
     group by schema, timeline, policy_id`,
    'replace-checks',
  )
}

/** In seconds; undefined: none is pending. */
export async function oldestPendingAge(db: Db): Promise<number | undefined> {
  const { rows } = await db.query<{ age: number | null }>(
    sql`
    select extract(epoch from clock_timestamp() - min(recorded_at))::float8 as age
      from revocation where is_pending`,
    'oldest-revocation',
  )
  return onlyRow(rows).age ?? undefined
}

/** Whether revocations up to this position are pending. Large scopes count only without a position. */
export async function isPending(db: Db, schema: string, upto?: Position): Promise<boolean> {
  const until = upto
    ? sql`timeline = ${upto.timeline} and number <= ${upto.number} and not is_large`
    : sql`true`
  const { rows } = await db.query<{ found: boolean }>(sql`
    select exists (select from revocation where is_pending and schema = ${schema} and ${until}) as found`)
  return onlyRow(rows).found
}

/**
 * Removes revocations that no authorization can be older than. The newest one of them stays as one of everything: an
 * authorization from before it is refused.
 */
export async function pruneRevocations(db: Db, keptMs: number, limit = 20_000): Promise<void> {
  await db.query(sql`
    with removed as (
         delete from revocation where id in (
                select id from revocation
                 where not is_pending and recorded_at < now() - make_interval(secs => ${keptMs / 1000})
                 order by id limit ${limit} for update skip locked)
      returning schema, timeline, number)
    insert into revocation (schema, timeline, number, kind, entity_id, is_pending)
    select schema, timeline, max(removed.number), 'everything', '', false
      from removed join followed using (schema, timeline)
     group by schema, timeline`)
}
