import { type Change, Fault, type Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { coalesced } from '../async/coalesced.js'
import { type Database, onlyRow } from '../postgres/database.js'
import { metrics } from '../process/metrics.js'

/** The end of a schema's change log, in memory. */
export interface Tail {
  /** Where the change log ends, as far as this process has heard. */
  known(): Position
  /** False: beyond what this process has heard, or of another timeline. */
  has(position: Position): boolean
  /** Reads where it ends, in a read that begins after the call; all callers share one. */
  sync(): Promise<Position>
  /** Takes what this process has just committed. Returns false when something before it is missing. */
  offer(position: Position, changes: readonly Change[]): boolean
  /** Changes after the position, in order, not always all of them. OUT_OF_RANGE: unknown here, or kept no longer. */
  after(position: Position): Promise<readonly Change[]>
}

const MOST_CHANGES = 20_000 // more than one write of many rows makes: followers read those from the database
const MOST_BYTES = 16 * 1024 * 1024
const BATCH = 500

/** `moved` is called whenever `known` has changed. */
export async function openTail(db: Database, moved: () => void): Promise<Tail> {
  let known = onlyRow((await db.query<Position>(HEAD, 'stream-head')).rows)
  let recent: Change[] = [] // without gaps; the last one is at `known`
  let bytes = 0
  const early = new Map<number, readonly Change[]>() // committed here, but what comes before has not arrived

  const has = ({ timeline, number }: Position): boolean =>
    timeline === known.timeline && number <= known.number

  function know(at: Position): void {
    known = at
    metrics.streamPosition.set({ schema: db.schema }, at.number)
  }
  know(known)

  function extend(changes: readonly Change[]): void {
    for (const change of changes) {
      recent.push(change)
      bytes += change.json.length
    }
    know({ timeline: known.timeline, number: known.number + changes.length })
    while (recent.length > MOST_CHANGES || (bytes > MOST_BYTES && recent.length > 1)) {
      recent = recent.slice(recent.length >> 1)
      bytes = recent.reduce((sum, { json }) => sum + json.length, 0)
    }
  }

  function restart(at: Position): void {
    know(at)
    recent = []
    bytes = 0
    early.clear()
  }

  /** Appends what was early and now fits. */
  function settle(): void {
    for (;;) {
      const next = early.get(known.number + 1)
      if (!next) break
      extend(next)
    }
    for (const first of early.keys()) if (first <= known.number) early.delete(first)
  }

  async function readOn(): Promise<Position> {
    for (;;) {
      const from = known
      const { head, changes } = await read(db, from.number)
      const last = changes.at(-1)?.number ?? from.number
      const hasGap = last < head.number && changes.length < BATCH
      if (
        head.timeline !== known.timeline ||
        head.number < from.number ||
        hasGap ||
        !isDense(changes, from)
      ) {
        restart(head)
        moved()
        return head
      }
      const fresh = changes.filter(({ number }) => number > known.number) // own commits may have come meanwhile
      if (fresh.length > 0) {
        extend(fresh)
        settle()
        moved()
      }
      if (last >= head.number) return head
    }
  }
  const sync = coalesced(readOn)

  return {
    known: () => known,
    has,
    sync,

    offer({ timeline, number }, changes) {
      const [first] = changes
      if (timeline !== known.timeline || !first) return has({ timeline, number })
      if (number <= known.number) return true
      early.set(first.number, changes)
      settle()
      moved()
      return early.size === 0
    },

    async after(position) {
      if (!has(position)) await sync()
      if (!has(position)) throw new Fault('OUT_OF_RANGE')
      const missing = known.number - position.number
      if (missing <= recent.length)
        return recent.slice(recent.length - missing, recent.length - missing + BATCH)
      const { head, changes } = await read(db, position.number)
      if (head.timeline !== position.timeline || changes.length === 0 || !isDense(changes, position))
        throw new Fault('OUT_OF_RANGE')
      return changes
    },
  }
}

const HEAD = sql`select timeline, number from stream`

interface ReadRow {
  readonly timeline: string
  readonly head: number
  readonly number: number | null
  readonly kind: string
  readonly id: string
  readonly json: string | null
  readonly at: Date
}

/** One statement, so that head and changes belong together. */
async function read(db: Database, after: number): Promise<{ head: Position; changes: readonly Change[] }> {
  const { rows } = await db.query<ReadRow>(
    sql`
    select timeline, stream.number as head, next.*
      from stream
      left join lateral (
           select number, kind, entity_id as id, entity::text as json, at
             from change where number > ${after} order by number limit ${BATCH}) as next on true
     order by next.number`,
    'read-changes',
  )
  const [first] = rows
  if (!first) throw new Error('stream has no row')
  const changes = rows.flatMap(({ number, kind, id, json, at }) =>
    number === null ? [] : [{ number, kind, id, json: Buffer.from(json ?? ''), atMs: at.getTime() }],
  )
  return { head: { timeline: first.timeline, number: first.head }, changes }
}

const isDense = (changes: readonly Change[], after: Position): boolean =>
  changes.every(({ number }, index) => number === after.number + index + 1)
