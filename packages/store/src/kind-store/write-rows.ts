import type { Entity, Field, Tags } from '@overlay/model'
import { type Context, notFound, type Written } from '@overlay/rpc'
import sql, { raw, type Sql } from 'sql-template-tag'
import type { RowChange } from '../change-log/change-log.js'
import { ReferencesReloaded } from '../change-log/deleted-entities.js'
import { WRITE_TOGETHER_BYTES, WRITE_TOGETHER_ROWS } from '../limits.js'
import { batch } from '../postgres/batch.js'
import type { Tx } from '../postgres/database.js'
import { isAway, isConflict } from '../postgres/database-failure.js'
import { textsOfAnyLength } from '../postgres/texts-of-any-length.js'
import type { Kind, Store } from './kind.js'
import { lockReferences, lockSql, type References, type WhenLocked, withReferences } from './references.js'
import {
  type AnyRow,
  type AnyValues,
  columnOf,
  columnsOf,
  columnValues,
  insertListSql,
  isAll,
  qualifiedColumnsOf,
  rowOf,
  tableOf,
} from './row.js'
import { changeOf } from './row-changes.js'
import type { WriteContext } from './seams.js'
import { uniqueFault } from './unique-fault.js'

/** What a write leaves of its row. */
export interface NextRow {
  readonly values: AnyValues
  readonly tags: Tags
}

/** One uniform write. */
export interface WriteRequest {
  readonly operation: 'create' | 'update' | 'delete'
  readonly kind: Kind
  readonly id: string
  /** The written fields, with their values. */
  readonly members: readonly (readonly [Field, unknown])[]
  /** How messages call the row if it does not exist. */
  readonly called: string
  /** The size of the body. */
  readonly bytes: number
  /**
   * Refuses with a Fault, or returns what to write; null: nothing, the row is deleted. `before` is null for a create. May
   * run several times.
   */
  step(tx: Tx, before: AnyRow | null, writing: Omit<WriteContext, 'isWritten'>): Promise<NextRow | null>
}

/** A write whose references have been looked up. */
interface Entry {
  readonly request: WriteRequest
  readonly references: References
  readonly context: Context
}

/**
 * Writes single rows, each with its audit and change rows. Writes of a kind that arrive while a transaction of it runs
 * share the next one. That transaction does not wait for the locks of its rows and references, and refuses nothing: a
 * write that it leaves out, or all of its writes if one of them fails, have transactions of their own, which wait and
 * refuse. So no write harms another.
 */
export function rowWriter(store: Store): (request: WriteRequest, context: Context) => Promise<Written> {
  const writers = new Map<string, (entry: Entry) => Promise<Written | undefined>>()

  /** Deletes are apart: they wait for rows that depend on theirs. */
  function writerOf({ kind, operation }: WriteRequest): (entry: Entry) => Promise<Written | undefined> {
    const name = `${operation === 'delete' ? 'delete ' : ''}${kind.entity.kind}`
    const existing = writers.get(name)
    if (existing) return existing
    const writer = batch((entries: readonly Entry[]) => writeSeveral(store, kind, entries), {
      limit: WRITE_TOGETHER_ROWS,
      sizeLimit: WRITE_TOGETHER_BYTES,
      sizeOf: ({ request }) => request.bytes,
      deadlineOf: ({ context }) => context.deadline,
    })
    writers.set(name, writer)
    return writer
  }

  return (request, context) =>
    withReferences(store, request.members, context, async (references) => {
      const entry = { request, references, context }
      const shared = isShareable(entry) ? await writerOf(request)(entry) : undefined
      return shared ?? writeAlone(store, entry)
    })
}

/** Other scopes than `true` differ by caller. */
const isShareable = ({ request: { kind, operation }, context }: Entry): boolean =>
  operation === 'create' || isAll(kind.seams.scope?.(context.caller) ?? whole)

const whole = sql`true`

async function writeAlone(store: Store, entry: Entry): Promise<Written> {
  const { kind, id, called } = entry.request
  try {
    const [written] = await write(store, kind, [entry], 'wait')
    if (!written) throw notFound(called, id)
    return written
  } catch (err) {
    throw uniqueFault(kind.entity, err) ?? err
  }
}

async function writeSeveral(
  store: Store,
  kind: Kind,
  entries: readonly Entry[],
): Promise<readonly (Written | undefined)[]> {
  try {
    return await write(store, kind, entries, 'skip locked')
  } catch (err) {
    const isOfOthers = err instanceof ReferencesReloaded || isConflict((err as Error).cause)
    if (isAway(err) && !isOfOthers) throw err
    return entries.map(() => undefined)
  }
}

/** In one transaction. Undefined: the row does not exist, or the write is left out. */
async function write(
  store: Store,
  kind: Kind,
  entries: readonly Entry[],
  whenLocked: WhenLocked,
): Promise<readonly (Written | undefined)[]> {
  const [first] = entries as readonly [Entry, ...Entry[]]
  const { result, position } = await store.changeLog.write(
    { ...first.context, deadline: latestOf(entries) },
    async (tx) => {
      const steps = await takeSteps(store, tx, kind, entries, whenLocked)
      return { result: steps.written, changes: steps.changes }
    },
  )
  return entries.map((entry) => (result.has(entry) ? { id: entry.request.id, position } : undefined))
}

/** None, if one of them has none. */
function latestOf(entries: readonly Entry[]): Date | undefined {
  const times = entries.map(({ context }) => context.deadline?.getTime() ?? Number.POSITIVE_INFINITY)
  const latest = Math.max(...times)
  return Number.isFinite(latest) ? new Date(latest) : undefined
}

interface Step {
  readonly entry: Entry
  readonly before: AnyRow | null
  readonly next: NextRow | null
  /** Of other rows. */
  readonly changes: readonly RowChange[]
}

async function takeSteps(
  store: Store,
  tx: Tx,
  kind: Kind,
  entries: readonly Entry[],
  whenLocked: WhenLocked,
): Promise<{ readonly written: ReadonlySet<Entry>; readonly changes: readonly RowChange[] }> {
  const { entity, seams } = kind
  const locked = await lockReferences(
    tx,
    store,
    entries.map(({ references }) => references),
    whenLocked,
  )
  const existing = await lockRows(tx, kind, entries, whenLocked)
  await locked.addFixed(entity, existing.values())
  const rows = gatheredRows(tx, entity)
  const steps: Step[] = []
  const ids = new Set<string>()
  for (const entry of inOrder(entries)) {
    const { request, context } = entry
    const { id, operation } = request
    const before = operation === 'create' ? null : existing.get(id)
    if (before === undefined || ids.has(id)) continue
    ids.add(id)
    const changes: RowChange[] = []
    const also = (change: RowChange): void => void changes.push({ ...change, by: context })
    const hadUses = rows.uses()
    try {
      const next = await request.step(rows.tx, before, { ...locked.of(entry.references), context, also })
      if (!next && before) await seams.deleting?.(rows.tx, before, { also })
      rows.add({ id, next, isNew: before === null })
      steps.push({ entry, before, next, changes })
    } catch (err) {
      if (whenLocked === 'wait' || rows.uses() > hadUses) throw err // it may have written
    }
  }
  const after = await rows.written()
  const changes = steps.flatMap(({ entry, before, changes }) => {
    const { id } = entry.request
    return [...changes, { ...changeOf(entity, id, before, after.get(id) ?? null), by: entry.context }]
  })
  return { written: new Set(steps.map(({ entry }) => entry)), changes }
}

/** Deletes in the order in which transactions lock rows that depend on theirs. */
const inOrder = (entries: readonly Entry[]): readonly Entry[] =>
  entries.toSorted(({ request: one }, { request: other }) =>
    one.operation === 'delete' && other.operation === 'delete' ? (one.id < other.id ? -1 : 1) : 0,
  )

/** The rows that are changed or deleted, and that the caller may see. */
async function lockRows(
  tx: Tx,
  { entity, seams }: Kind,
  entries: readonly Entry[],
  whenLocked: WhenLocked,
): Promise<ReadonlyMap<string, AnyRow>> {
  const ids = entries.filter(({ request }) => request.operation !== 'create').map(({ request }) => request.id)
  const [first] = entries
  if (ids.length === 0 || !first) return new Map()
  const scope = seams.scope?.(first.context.caller) ?? whole
  const { rows } = await tx.query(sql`
    select ${columnsOf(entity)} from ${tableOf(entity)}
     where id = any(${textsOfAnyLength(ids)}::text[]) and ${scope} order by id for update ${lockSql(whenLocked)}`)
  return new Map(rows.map((row) => [row.id, rowOf(entity, row)]))
}

interface GatheredRow {
  readonly id: string
  /** Null: it is deleted. */
  readonly next: NextRow | null
  readonly isNew: boolean
}

interface GatheredRows {
  /** Its queries see the rows that were added. */
  readonly tx: Tx
  /** How often it was used. */
  uses(): number
  add(row: GatheredRow): void
  /** Writes them. Returns those that exist then. */
  written(): Promise<ReadonlyMap<string, AnyRow>>
}

/** Rows that are written together, but before the transaction is used otherwise. */
function gatheredRows(tx: Tx, entity: Entity): GatheredRows {
  const written = new Map<string, AnyRow>()
  let gathered: GatheredRow[] = []
  let uses = 0

  async function writeGathered(): Promise<void> {
    const rows = gathered
    gathered = []
    const statements = [
      insertSql(
        entity,
        rows.filter(({ isNew }) => isNew),
      ),
      updateSql(
        entity,
        rows.filter(({ next, isNew }) => next && !isNew),
      ),
      deleteSql(
        entity,
        rows.filter(({ next }) => !next),
      ),
    ]
    for (const statement of statements) {
      if (!statement) continue
      const { rows: after } = await tx.query(statement)
      for (const row of after) written.set(row.id, rowOf(entity, row))
    }
  }

  return {
    tx: {
      inTransaction: true,
      async query(query, name) {
        uses++
        await writeGathered()
        return tx.query(query, name)
      },
    },
    uses: () => uses,
    add: (row) => gathered.push(row),
    async written() {
      await writeGathered()
      return written
    },
  }
}

const listOf = (entity: Entity, rows: readonly GatheredRow[]): string =>
  JSON.stringify(rows.map(({ id, next }) => next && columnValues(entity, id, next.values, next.tags)))

/** In the order of names: two transactions that insert the same ones wait for each other only once. */
function insertSql(entity: Entity, rows: readonly GatheredRow[]): Sql | undefined {
  if (rows.length === 0) return undefined
  const unique = Object.entries(entity.fields).find(([, field]) => field.unique)
  const order = raw(`entry.${unique ? columnOf(...unique) : 'id'}`)
  return sql`${insertListSql(entity, listOf(entity, rows), sql`order by ${order}`)} returning ${columnsOf(entity)}`
}

function updateSql(entity: Entity, rows: readonly GatheredRow[]): Sql | undefined {
  if (rows.length === 0) return undefined
  const table = tableOf(entity)
  const columns = ['tags', ...Object.entries(entity.fields).map(([name, field]) => columnOf(name, field))]
  // the planner takes a list for long, and would read a table of some thousand rows completely
  const among = sql`${table}.id = any(${textsOfAnyLength(rows.map(({ id }) => id))}::text[])`
  return sql`
    update ${table} set ${raw(columns.map((column) => `${column} = entry.${column}`).join(', '))},
           updated_at = clock_timestamp()
      from jsonb_populate_recordset(null::${table}, ${listOf(entity, rows)}::jsonb) as entry
     where ${table}.id = entry.id and ${among}
 returning ${qualifiedColumnsOf(entity)}`
}

const deleteSql = (entity: Entity, rows: readonly GatheredRow[]): Sql | undefined =>
  rows.length === 0
    ? undefined
    : sql`delete from ${tableOf(entity)} where id = any(${textsOfAnyLength(rows.map(({ id }) => id))}::text[])`
