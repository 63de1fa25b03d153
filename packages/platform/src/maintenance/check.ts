import { kinds } from '@overlay/model'
import type { Context, Finding } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import type { ChangeLog, RowChange } from '../change-log/change-log.js'
import type { Consumer } from '../change-log/consumer.js'
import type { Names } from '../kind-store/seams.js'
import type { Db, Tx } from '../postgres/database.js'

/** How a check is made: whether it repairs, and for whom. */
export interface CheckRequest {
  readonly fix: boolean
  readonly context: Context
}

/** One thing that holds between this schema and others. It tells where it does not, and what it did about it. */
export type Check = (checking: CheckRequest) => AsyncIterable<readonly Finding[]>

export interface Reference {
  /** Whose references they are, for people: 'session'. */
  readonly what: string
  /** Selects `id` and `ref`: which row names which. */
  readonly from: Sql
  /** The kinds that `ref` may be of. */
  readonly to: readonly string[]
  /** What becomes of the rows that name these. */
  repair(tx: Tx, gone: readonly string[]): Promise<readonly RowChange[]>
}

/** What checks use. */
export interface CheckDeps {
  readonly changeLog: ChangeLog
  readonly names: Names
  /** By schema: whose deletions take effect here by themselves. */
  readonly consumers: ConsumersBySchema
}

export type ConsumersBySchema = Readonly<Partial<Record<string, Pick<Consumer, 'catchUp'>>>>

const REFS_AT_ONCE = 500
const MOST_FINDINGS_AT_ONCE = 1001
const CONFIRM_MS = 10_000

/** What was asked of an owner is there by then, or the check fails. */
export const checkSignal = ({ signal }: Context): AbortSignal =>
  AbortSignal.any([signal, AbortSignal.timeout(CONFIRM_MS)])

/** Comes first: who has just been started again may not be heard yet. Who stays away is told of by what asks it. */
export const catchUpFirst = (followed: ConsumersBySchema): Check =>
  async function* ({ context }) {
    await Promise.allSettled(confirmations(followed, context))
    yield []
  }

/**
 * Waits until everything is followed here that any owner had at the time of the call. What looked wrong may come by way
 * of one owner and be put right by way of another.
 */
export const catchUpAll = async (followed: ConsumersBySchema, context: Context): Promise<void> => {
  await Promise.all(confirmations(followed, context))
}

const confirmations = (followed: ConsumersBySchema, context: Context) =>
  Object.values(followed).map((following) => following?.catchUp(checkSignal(context)))

/**
 * Rows that name what its owner does not have. An owner is asked twice, and our rows are read after each answer and all
 * that followed from it: a reference counts when the entity is missing both times and is still named in the end. A
 * repair asks a third time, in its transaction, which stops the followers that could put the reference right.
 */
export const references = (
  { changeLog, names, consumers }: CheckDeps,
  { what, from, to, repair }: Reference,
): Check =>
  async function* ({ fix, context }) {
    const { db } = changeLog
    const targets = to.map((kind) => kinds.get(kind)?.singular ?? kind).join(' or ')
    const owners = to.map((kind) => kinds.get(kind)?.owner ?? kind)

    const missing = async (refs: readonly string[]): Promise<string[]> => {
      const known = await Promise.all(to.map((kind) => names(kind, refs, context)))
      return refs.filter((ref) => !known.some((ids) => ids.has(ref)))
    }
    const naming = async (gone: readonly string[], by: Db = db) => {
      const { rows } = await by.query<{ id: string; ref: string }>(sql`
        select id, ref from (${from}) as reference where ref = any(${gone}) order by id, ref
         limit ${MOST_FINDINGS_AT_ONCE}`)
      return rows
    }
    /** Those of these rows that name what is missing now. */
    const look = async (refs: readonly string[]) => {
      const gone = await missing(refs)
      if (gone.length === 0) return []
      await catchUpAll(consumers, context)
      return naming(gone)
    }
    const repaired = (refs: readonly string[]) =>
      changeLog.write(context, async (tx) => {
        await tx.query(sql`select from followed where schema = any(${owners}) order by schema for share`)
        const gone = await missing(refs)
        const found = await naming(gone, tx)
        const changes = found.length > 0 ? await repair(tx, gone) : []
        return { result: { found, left: await naming(gone, tx) }, changes }
      })

    for (let last = ''; ; ) {
      const refs = await distinctRefs(changeLog, from, last)
      if (refs.length === 0) return
      last = refs.at(-1) ?? last
      const suspected = await look(refs)
      if (suspected.length === 0) continue
      const found = await look(refsIn(suspected))
      if (found.length === 0) continue
      const { result } = fix ? await repaired(refsIn(found)) : { result: { found, left: found } }
      const left = new Set(result.left.map(({ id, ref }) => `${id} ${ref}`))
      yield result.found.map(({ id, ref }) => ({
        description: `${what} ${id} names ${targets} ${ref}, which does not exist`,
        fixed: !left.has(`${id} ${ref}`),
      }))
    }
  }

const refsIn = (rows: readonly { readonly ref: string }[]): string[] => [
  ...new Set(rows.map(({ ref }) => ref)),
]

async function distinctRefs({ db }: ChangeLog, from: Sql, after: string): Promise<readonly string[]> {
  const { rows } = await db.query<{ ref: string }>(sql`
    select distinct ref collate "C" as ref from (${from}) as reference
     where ref collate "C" > ${after} order by 1 limit ${REFS_AT_ONCE}`)
  return rows.map(({ ref }) => ref)
}
