import { kinds } from '@overlay/model'
import type { Context, Finding } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import type { Tx } from '../database.js'
import type { Names } from '../entity-store/seams.js'
import type { Following } from '../follow.js'
import type { History, RowChange } from '../history.js'

/** How a check is made: whether it repairs, and for whom. */
export interface Checking {
  readonly fix: boolean
  readonly context: Context
}

/** One thing that holds between this schema and others. It tells where it does not, and what it did about it. */
export type Check = (checking: Checking) => AsyncIterable<readonly Finding[]>

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

export interface ReferenceGrounds {
  readonly history: History
  readonly names: Names
  /** By schema: whose deletions take effect here by themselves. */
  readonly followed: Followed
}

export type Followed = Readonly<Partial<Record<string, Pick<Following, 'confirm'>>>>

const REFS_AT_ONCE = 500
const MOST_FINDINGS_AT_ONCE = 1001
const CONFIRM_MS = 10_000

/** What was asked of an owner is there by then, or the check fails. */
export const soon = ({ signal }: Context): AbortSignal =>
  AbortSignal.any([signal, AbortSignal.timeout(CONFIRM_MS)])

/** Comes first: who has just been started again may not be heard yet. Who stays away is told of by what asks it. */
export const heard = (followed: Followed): Check =>
  async function* ({ context }) {
    const owners = Object.values(followed)
    await Promise.allSettled(owners.map((following) => following?.confirm(soon(context))))
    yield []
  }

/**
 * Rows that name what its owner does not have. Ids are not given twice: what is gone for the owner stays gone, so the
 * repair may go by the id alone.
 */
export const references = (
  { history, names, followed }: ReferenceGrounds,
  { what, from, to, repair }: Reference,
): Check =>
  async function* ({ fix, context }) {
    const { db } = history
    const targets = to.map((kind) => kinds.get(kind)?.singular ?? kind).join(' or ')
    const naming = async (gone: readonly string[]) => {
      const { rows } = await db.query<{ id: string; ref: string }>(sql`
        select id, ref from (${from}) as reference where ref = any(${gone}) order by id, ref
         limit ${MOST_FINDINGS_AT_ONCE}`)
      return rows
    }
    for (let last = ''; ; ) {
      const refs = await distinctRefs(history, from, last)
      if (refs.length === 0) return
      last = refs.at(-1) ?? last
      const known = await Promise.all(to.map((kind) => names(kind, refs, context)))
      const gone = refs.filter((ref) => !known.some((ids) => ids.has(ref)))
      if (gone.length === 0) continue
      for (const kind of to) await followed[kinds.get(kind)?.owner ?? '']?.confirm(soon(context))
      const found = await naming(gone)
      if (found.length === 0) continue
      if (fix)
        await history.write(context, async (tx) => ({ result: undefined, changes: await repair(tx, gone) }))
      const left = new Set(fix ? (await naming(gone)).map(({ id, ref }) => `${id} ${ref}`) : [])
      yield found.map(({ id, ref }) => ({
        description: `${what} ${id} names ${targets} ${ref}, which does not exist`,
        fixed: fix && !left.has(`${id} ${ref}`),
      }))
    }
  }

async function distinctRefs({ db }: History, from: Sql, after: string): Promise<readonly string[]> {
  const { rows } = await db.query<{ ref: string }>(sql`
    select distinct ref collate "C" as ref from (${from}) as reference
     where ref collate "C" > ${after} order by 1 limit ${REFS_AT_ONCE}`)
  return rows.map(({ ref }) => ref)
}
