import { kinds as allKinds } from '@overlay/model'
import { type Change, type Context, Fault, type Finding, type Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { pushAll } from '../async/push-all.js'
import type { ChangeLog, RowChange } from '../change-log/change-log.js'
import type { Effects } from '../change-log/consumer.js'
import type { Source } from '../change-log/source.js'
import type { Tx } from '../postgres/database.js'
import { type Check, type CheckDeps, catchUpAll } from './check.js'

export interface CopiesOptions {
  readonly source: Source
  readonly kinds: readonly string[]
  /** Brings our rows in line with these of their owner; tells what was not. */
  readonly apply: Effects['apply']
}

const ROWS_AT_ONCE = 200

/**
 * Our rows that follow from another service's: whatever following each of its rows anew would change is not as it
 * should be. That is tried and undone, and tried again when all that the owners had is followed here: only what would
 * change both times counts, and the second time it is kept if it is to be repaired. Rows that change meanwhile are left
 * to the follower.
 */
export const copies = ({ changeLog, consumers }: CheckDeps, { source, kinds, apply }: CopiesOptions): Check =>
  async function* ({ fix, context }) {
    let mark: Position | undefined
    const moving = new Set<string>()

    /** Notes what the owner has changed since the load began. */
    const lookOn = async (): Promise<Position> => {
      for (;;) {
        if (!mark) throw new Error("load without 'upto'")
        const { upto, changes, more } = await source.pull(mark, context.signal, kinds)
        for (const { kind, id } of changes) moving.add(`${kind} ${id}`)
        mark = upto ?? mark
        if (!more) return mark
      }
    }
    /** Steps here may follow by way of a third service: what moved before they were looked at explains them. */
    const bring = async (rows: readonly Change[], way: typeof committed): Promise<readonly RowChange[]> => {
      const hasMoved = ({ kind, id }: Change): boolean => moving.has(`${kind} ${id}`)
      for (let left = rows; ; left = left.filter((row) => !hasMoved(row))) {
        const outcome = await way(changeLog, context, async (tx) => {
          await tx.query(sql`select from followed where schema = ${source.schema} for update`)
          const upto = await lookOn()
          left = left.filter((row) => !hasMoved(row))
          const changes = left.length > 0 ? await apply(tx, left, upto) : []
          if (changes.length > 0) await lookOn()
          return left.some(hasMoved) ? undefined : changes
        })
        if (outcome) return outcome
      }
    }
    /** What cannot be brought here together is tried one by one. */
    const compare = async (rows: readonly Change[]): Promise<Finding[]> => {
      try {
        const suspected = new Set((await bring(rows, rehearsed)).map(nameOf))
        if (suspected.size === 0) return []
        await catchUpAll(consumers, context)
        const changes = await bring(rows, fix ? committed : rehearsed)
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
        changeLog.log.warn(
          { err, schema: source.schema, kind: row.kind, id: row.id },
          'row not brought in line',
        )
        return [
          { description: `${nameOf(row)} of schema ${source.schema} cannot be followed here`, fixed: false },
        ]
      }
    }

    for await (const { upto, changes } of source.load(kinds, context.signal)) {
      mark ??= upto
      for (let from = 0; from < changes.length; from += ROWS_AT_ONCE) {
        await catchUpAll(consumers, context)
        yield await compare(changes.slice(from, from + ROWS_AT_ONCE))
      }
    }
    context.signal.throwIfAborted()
  }

/** Undefined: to be undone, and tried again. */
type Work = (tx: Tx) => Promise<readonly RowChange[] | undefined>

const undo = new Error('undone on purpose')

async function committed(
  changeLog: ChangeLog,
  context: Context,
  work: Work,
): Promise<readonly RowChange[] | undefined> {
  try {
    const { result } = await changeLog.write(context, async (tx) => {
      const changes = await work(tx)
      if (!changes) throw undo
      return { result: changes, changes }
    })
    return result
  } catch (err) {
    if (err === undo) return undefined
    throw err
  }
}

/** What the work would change; nothing stays of it. */
async function rehearsed({ db }: ChangeLog, _context: Context, work: Work): ReturnType<Work> {
  let changes: readonly RowChange[] | undefined
  try {
    await db.transaction(undefined, async (tx) => {
      changes = await work(tx)
      throw undo
    })
  } catch (err) {
    if (err !== undo) throw err
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
