import type { Change, Context, Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { onlyRow, type Tx } from '../postgres/database.js'
import { refuseTooLarge } from './too-large.js'

/** One row that a transaction made, changed or removed. */
export interface RowChange {
  readonly kind: string
  readonly id: string
  /** For the audit, free of secrets; null: it was not there before, or is gone after. */
  readonly before: object | null
  readonly after: object | null
  /** What followers get; null: deleted. Absent: nobody follows this kind. */
  readonly payload?: object | null | undefined
  /** By whom, where a transaction writes for several requests. */
  readonly by?: Actor | undefined
}

export type Actor = Pick<Context, 'caller' | 'requestId'>

/** What followers have to hear of a transaction. */
export interface Appended {
  readonly position: Position
  readonly changes: readonly Change[]
}

const ROWS_AT_ONCE = 2000
const BYTES_AT_ONCE = 16 * 1024 * 1024

/**
 * The last statements of a transaction: from here to the commit nobody else can append to this schema. A row that is
 * too large to be told is refused, and with it all that the transaction did.
 */
export async function appendChanges(
  tx: Tx,
  context: Actor,
  rows: readonly RowChange[],
): Promise<Appended | undefined> {
  const entries: Entry[] = []
  for (const row of rows) entries.push(entryOf(row, context))
  for (const entry of entries) await refuseTooLarge(tx, entry)
  let position: Position | undefined
  const changes: Change[] = []
  for (const some of atOnce(entries)) {
    const appended = await appendSome(tx, some)
    if (!appended) continue
    position = appended.position
    for (const change of appended.changes) changes.push(change)
  }
  return position && { position, changes }
}

interface Entry {
  readonly kind: string
  readonly id: string
  /** The row as the statement reads it. */
  readonly text: string
  /** What followers get, as JSON, empty where the row is gone; undefined: nobody follows it. */
  readonly told: string | undefined
}

function entryOf({ by, payload, ...row }: RowChange, context: Actor): Entry {
  const { caller, requestId } = by ?? context
  const entry = {
    ...row,
    told: payload,
    followed: payload !== undefined,
    identity_id: caller.identityId,
    request_id: requestId,
  }
  return {
    kind: row.kind,
    id: row.id,
    text: JSON.stringify(entry),
    told: payload === undefined ? undefined : payload === null ? '' : JSON.stringify(payload),
  }
}

function* atOnce(entries: readonly Entry[]): Iterable<readonly Entry[]> {
  let [some, length]: [Entry[], number] = [[], 0]
  for (const entry of entries) {
    some.push(entry)
    length += entry.text.length
    if (some.length < ROWS_AT_ONCE && length < BYTES_AT_ONCE) continue
    yield some
    ;[some, length] = [[], 0]
  }
  if (some.length > 0) yield some
}

async function appendSome(tx: Tx, entries: readonly Entry[]): Promise<Appended | undefined> {
  const followed = entries.filter(({ told }) => told !== undefined)
  const list = `[${entries.map(({ text }) => text).join()}]`
  if (followed.length === 0) {
    await tx.query(
      sql`
      insert into audit (kind, entity_id, before, after, identity_id, request_id)
      select kind, id, before, after, identity_id, request_id
        from jsonb_to_recordset(${list}::jsonb)
          as (kind text, id text, before jsonb, after jsonb, identity_id text, request_id text)`,
      'append-audit',
    )
    return undefined
  }
  const { rows: heads } = await tx.query<Position & { at: Date }>(
    sql`
    with list as (
         select *, sum(followed::int) over (order by place) as nth
           from rows from (jsonb_to_recordset(${list}::jsonb)
                as (kind text, id text, before jsonb, after jsonb, told jsonb, followed boolean,
                    identity_id text, request_id text))
                with ordinality as list (
                kind, id, before, after, told, followed, identity_id, request_id, place)),
         head as materialized (
         select timeline, number, at, number - ${followed.length}::int as start
           from advance(${followed.length}::int)),
         audited as (
         insert into audit (number, kind, entity_id, before, after, identity_id, request_id, at)
         select case when followed then start + nth end, kind, id, before, after, identity_id, request_id, at
           from list, head),
         changed as (
         insert into change (number, kind, entity_id, entity, at)
         select start + nth, kind, id, told, at from list, head where followed)
  select timeline, number, at from head`,
    'append',
  )
  const { timeline, number, at } = onlyRow(heads)
  const start = number - followed.length
  const changes = followed.map(({ kind, id, told }, index) => ({
    kind,
    id,
    json: Buffer.from(told ?? ''),
    atMs: at.getTime(),
    number: start + index + 1,
  }))
  return { position: { timeline, number }, changes }
}
