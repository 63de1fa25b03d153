import { kinds } from '@overlay/model'
import type { Context, Finding } from '@overlay/rpc'
import type { ChangeLog, Consumer, RowChange } from '@overlay/store/change-log'
import type { Names } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

/** How a check runs. */
export interface CheckRequest {
  /** Repair what is found. */
  readonly fix: boolean
  readonly context: Context
}

/** Checks one invariant between this schema and others. Returns the violations, and whether they are repaired. */
export type Check = (request: CheckRequest) => AsyncIterable<readonly Finding[]>

export interface Reference {
  /** What has the references, for messages: 'session'. */
  readonly what: string
  /** Selects `id` and `ref`: the row, and the entity that it refers to. */
  readonly from: Sql
  /** The kinds that `ref` may be of. */
  readonly to: readonly string[]
  /** Repairs the rows that refer to these missing entities. */
  repair(tx: Tx, missing: readonly string[]): Promise<readonly RowChange[]>
}

/** What checks use. */
export interface CheckDeps {
  readonly changeLog: ChangeLog
  readonly names: Names
  readonly consumers: ConsumersBySchema
}

/** The consumers of this schema, by the schema that they follow. */
export type ConsumersBySchema = Readonly<Partial<Record<string, Pick<Consumer, 'catchUp'>>>>

const REFS_PER_PAGE = 500
const MOST_FINDINGS = 1001
const CATCH_UP_MS = 10_000

/** Limits a wait for an owner. When it is over the check fails. */
export const checkSignal = ({ signal }: Context): AbortSignal =>
  AbortSignal.any([signal, AbortSignal.timeout(CATCH_UP_MS)])

/** Runs first: consumers of a restarted owner may need a moment. Later checks report an owner that is unavailable. */
export const catchUpFirst = (consumers: ConsumersBySchema): Check =>
  async function* ({ context }) {
    await Promise.allSettled(catchUps(consumers, context))
    yield []
  }

/**
 * Waits until all consumers have what the owners had at the call. A violation that comes from one owner may be repaired
 * by a change of another.
 */
export const catchUpAll = async (consumers: ConsumersBySchema, context: Context): Promise<void> => {
  await Promise.all(catchUps(consumers, context))
}

const catchUps = (consumers: ConsumersBySchema, context: Context) =>
  Object.values(consumers).map((consumer) => consumer?.catchUp(checkSignal(context)))

/**
 * Finds rows that refer to entities which their owner does not have. Asks the owner twice, and reads the rows after each
 * answer has taken effect here: a reference counts when the entity is missing both times and the row is still there. A
 * repair asks a third time, in its transaction, which stops the consumers that could repair the reference themselves.
 */
export const references = (
  { changeLog, names, consumers }: CheckDeps,
  { what, from, to, repair }: Reference,
): Check =>
  async function* ({ fix, context }) {
    const { db } = changeLog
    const targets = to.map((kind) => kinds.get(kind)?.singular ?? kind).join(' or ')
    const owners = to.map((kind) => kinds.get(kind)?.owner ?? kind)

    const missingOf = async (refs: readonly string[]): Promise<string[]> => {
      const existing = await Promise.all(to.map((kind) => names(kind, refs, context)))
      return refs.filter((ref) => !existing.some((ids) => ids.has(ref)))
    }
    const rowsWith = async (refs: readonly string[], by: Db = db) => {
      const { rows } = await by.query<{ id: string; ref: string }>(sql`
        select id, ref from (${from}) as reference where ref = any(${refs}) order by id, ref
         limit ${MOST_FINDINGS}`)
      return rows
    }
    /** The rows whose entity is missing now. */
    const violations = async (refs: readonly string[]) => {
      const missing = await missingOf(refs)
      if (missing.length === 0) return []
      await catchUpAll(consumers, context)
      return rowsWith(missing)
    }
    const repaired = (refs: readonly string[]) =>
      changeLog.write(context, async (tx) => {
        await tx.query(sql`select from followed where schema = any(${owners}) order by schema for share`)
        const missing = await missingOf(refs)
        const found = await rowsWith(missing, tx)
        const changes = found.length > 0 ? await repair(tx, missing) : []
        return { result: { found, left: await rowsWith(missing, tx) }, changes }
      })

    for (let last = ''; ; ) {
      const refs = await distinctRefs(changeLog, from, last)
      if (refs.length === 0) return
      last = refs.at(-1) ?? last
      const suspected = await violations(refs)
      if (suspected.length === 0) continue
      const found = await violations(refsIn(suspected))
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
     where ref collate "C" > ${after} order by 1 limit ${REFS_PER_PAGE}`)
  return rows.map(({ ref }) => ref)
}
