import type { Change, Context, Position } from '@overlay/rpc'
import sql, { raw, type Sql } from 'sql-template-tag'
import { APPENDED_CHARACTERS, APPENDED_ROWS } from '../limits.js'
import { onlyRow, type Tx } from '../postgres/database.js'
import { refuseTooLarge } from './message-size.js'

/** One row that a transaction created, changed or deleted. */
export interface RowChange {
  readonly kind: string
  readonly id: string
  /** For the audit, without secrets; null: the row did not exist before, or does not after. */
  readonly before: object | null
  readonly after: object | null
  /** What followers get; null: deleted. Absent: the kind is not followed. */
  readonly payload?: object | null | undefined
  /** The caller, where a transaction writes for several requests. */
  readonly by?: Actor | undefined
}

/** The author of a change, for the audit. */
export type Actor = Pick<Context, 'caller' | 'requestId' | 'sourceAddress'>

/** The part of a transaction that followers get. */
export interface Appended {
  readonly position: Position
  readonly changes: readonly Change[]
}

/**
 * Appends the changes of a transaction. Its last statements: from here to the commit no other transaction can append to
 * this schema. Refuses rows that are too large for followers, and with them the transaction.
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
  for (const chunk of chunksOf(entries)) {
    const appended = await appendChunk(tx, chunk)
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
  /** What followers get, as JSON, empty where the row is deleted; undefined: the kind is not followed. */
  readonly payload: string | undefined
}

function entryOf({ by, payload, ...row }: RowChange, context: Actor): Entry {
  const { caller, requestId, sourceAddress } = by ?? context
  const entry = {
    ...row,
    payload,
    followed: payload !== undefined,
    identity_id: caller.identityId,
    identity_name: caller.identityName,
    source_address: sourceAddress,
    request_id: requestId,
  }
  return {
    kind: row.kind,
    id: row.id,
    text: JSON.stringify(entry),
    payload: payload === undefined ? undefined : payload === null ? '' : JSON.stringify(payload),
  }
}

function* chunksOf(entries: readonly Entry[]): Iterable<readonly Entry[]> {
  let [chunk, length]: [Entry[], number] = [[], 0]
  for (const entry of entries) {
    chunk.push(entry)
    length += entry.text.length
    if (chunk.length < APPENDED_ROWS && length < APPENDED_CHARACTERS) continue
    yield chunk
    ;[chunk, length] = [[], 0]
  }
  if (chunk.length > 0) yield chunk
}

async function appendChunk(tx: Tx, entries: readonly Entry[]): Promise<Appended | undefined> {
  const followed = entries.filter(({ payload }) => payload !== undefined)
  const list = `[${entries.map(({ text }) => text).join()}]`
  if (followed.length === 0) {
    await tx.query(
      sql`
      insert into audit (kind, entity_id, before, after, identity_id, identity_name, source_address, request_id)
      select kind, id, before, after, identity_id, identity_name, source_address, request_id
        from jsonb_to_recordset(${list}::jsonb)
          as (kind text, id text, before jsonb, after jsonb, identity_id text, identity_name text,
              source_address text, request_id text)`,
      'append-audit',
    )
    return undefined
  }
  const { rows: heads } = await tx.query<Position & { at: Date }>(
    sql`
    with list as (
         select *, sum(followed::int) over (order by place) as nth
           from rows from (jsonb_to_recordset(${list}::jsonb)
                as (kind text, id text, before jsonb, after jsonb, payload jsonb, followed boolean,
                    identity_id text, identity_name text, source_address text, request_id text))
                with ordinality as list (
                kind, id, before, after, payload, followed, identity_id, identity_name, source_address, request_id,
                place)),
         head as materialized (
         select timeline, number, at, number - ${followed.length}::int as start
           from advance(${followed.length}::int)),
         audited as (
         insert into audit (number, kind, entity_id, before, after, identity_id, identity_name, source_address,
                            request_id, at)
         select case when followed then start + nth end, kind, id, before, after, identity_id, identity_name,
                source_address, request_id, at
           from list, head),
         changed as (
         insert into change (number, kind, entity_id, entity, at)
         select start + nth, kind, id, payload, at from list, head where followed)
  select timeline, number, at from head`,
    'append',
  )
  const { timeline, number, at } = onlyRow(heads)
  const start = number - followed.length
  const changes = followed.map(({ kind, id, payload }, index) => ({
    kind,
    id,
    json: Buffer.from(payload ?? ''),
    atMs: at.getTime(),
    number: start + index + 1,
  }))
  return { position: { timeline, number }, changes }
}

/**
 * A common table expression `head` with the numbers of as many changes as `rows`, another one, has: the first is
 * `start` + 1. Without rows it is empty. Its lock on the counter ends with the commit.
 */
export const headFor = (rows: string): Sql => sql`
         head as materialized (
         select timeline, number, number - n as start, at
           from (select count(*)::int as n from ${raw(rows)}) as counted, advance(n)
          where n > 0)`
