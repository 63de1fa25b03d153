import { kinds as allKinds } from '@overlay/model'
import { pagesOf, pushAll } from '@overlay/process/async'
import { type Change, type Context, Fault, type Finding, type Position } from '@overlay/rpc'
import type { ChangeLog, Effects, RowChange, Source } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { type Check, type CheckDeps, catchUpAll } from './check.js'

export interface CopiesOptions {
  readonly source: Source
  readonly kinds: readonly string[]
  /** Updates our rows from these rows of their owner. Returns what it changed. */
  readonly apply: Effects['apply']
}

const ROWS_PER_PAGE = 200

/**
 * Finds rows that differ from those of another service which they copy: a row that following its source again would
 * change. Each page is applied and rolled back, and applied again when the consumers have caught up: only what changes
 * both times counts. The second time it is committed if it is to be repaired. Rows that change meanwhile are left to the
 * consumer.
 */
export const copies = ({ changeLog, consumers }: CheckDeps, { source, kinds, apply }: CopiesOptions): Check =>
  async function* ({ fix, context }) {
    let mark: Position | undefined
    const moved = new Set<string>()

    /** Reads what the owner has changed since the load began. */
    const readMoves = async (): Promise<Position> => {
      for (;;) {
        if (!mark) throw new Error("load without 'upto'")
        const { upto, changes, more } = await source.pull(mark, context.signal, kinds)
        for (const { kind, id } of changes) moved.add(`${kind} ${id}`)
        mark = upto ?? mark
        if (!more) return mark
      }
    }
    /** Applies the rows. Changes may come by way of a third service: a row that has moved explains them. */
    const applyRows = async (rows: readonly Change[], isKept: boolean): Promise<readonly RowChange[]> => {
      const hasMoved = ({ kind, id }: Change): boolean => moved.has(`${kind} ${id}`)
      for (let left = rows; ; left = left.filter((row) => !hasMoved(row))) {
        const outcome = await run(changeLog, context, isKept, async (tx) => {
          await tx.query(sql`select from followed where schema = ${source.schema} for update`)
          const upto = await readMoves()
          left = left.filter((row) => !hasMoved(row))
          const changes = left.length > 0 ? await apply(tx, left, upto) : []
          if (changes.length > 0) await readMoves()
          return left.some(hasMoved) ? undefined : changes
        })
        if (outcome) return outcome
      }
    }
    /** Rows that fail together are tried one by one. */
    const compare = async (rows: readonly Change[]): Promise<Finding[]> => {
      try {
        const suspected = new Set((await applyRows(rows, false)).map(nameOf))
        if (suspected.size === 0) return []
        await catchUpAll(consumers, context)
        const changes = await applyRows(rows, fix)
        return changes
          .filter((change) => fix || suspected.has(nameOf(change)))
          .map((change) => ({ description: describe(change, source), fixed: fix }))
      } catch (err) {
        const [row] = rows
        if (err instanceof Fault || !row) throw err
        if (rows.length > 1) {
          const found: Finding[] = []
          for (const one of rows) pushAll(found, await compare([one]))
          return found
        }
        changeLog.log.warn({ err, schema: source.schema, kind: row.kind, id: row.id }, 'row not compared')
        return [
          { description: `${nameOf(row)} of schema ${source.schema} cannot be followed here`, fixed: false },
        ]
      }
    }

    for await (const { upto, changes } of source.load(kinds, context.signal)) {
      mark ??= upto
      for (const page of pagesOf(changes, ROWS_PER_PAGE)) {
        await catchUpAll(consumers, context)
        yield await compare(page)
      }
    }
    context.signal.throwIfAborted()
  }

const rollback = new Error('rolled back on purpose')

/** Returns what the work changes; undefined: it is to be tried again. Commits that only where it is to be kept. */
async function run(
  changeLog: ChangeLog,
  context: Context,
  isKept: boolean,
  work: (tx: Tx) => Promise<readonly RowChange[] | undefined>,
): Promise<readonly RowChange[] | undefined> {
  let changes: readonly RowChange[] | undefined
  try {
    await changeLog.write(context, async (tx) => {
      changes = await work(tx)
      if (!changes || !isKept) throw rollback
      return { result: undefined, changes }
    })
  } catch (err) {
    if (err !== rollback) throw err
  }
  return changes
}

const nameOf = ({ kind, id }: { readonly kind: string; readonly id: string }): string =>
  `${allKinds.get(kind)?.singular ?? kind} ${id}`

function describe(change: RowChange, { schema }: Source): string {
  const { before, after } = change
  if (!before) return `${nameOf(change)} is missing, though it follows from schema ${schema}`
  if (!after) return `${nameOf(change)} is there, though it does not follow from schema ${schema}`
  const old: Readonly<Record<string, unknown>> = { ...before }
  const differing = Object.entries(after).filter(
    ([name, value]) => name !== 'updatedAt' && JSON.stringify(old[name]) !== JSON.stringify(value),
  )
  const members = differing.map(([name]) => name).join(', ')
  return `${nameOf(change)} is not as it follows from schema ${schema}: ${members}`
}
