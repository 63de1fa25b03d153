import { metrics } from '@overlay/process'
import { coalesced } from '@overlay/process/async'
import { ownBytes } from '@overlay/process/bytes'
import { type Change, Fault, type Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { READ_CHANGES, RECENT_BYTES, RECENT_CHANGES } from '../limits.js'
import { type Database, onlyRow } from '../postgres/database.js'

/** The last changes of a schema, in memory. */
export interface RecentChanges {
  /** The end of the change log, as far as this process knows it. */
  end(): Position
  /** False: beyond `end`, or of another timeline. */
  has(position: Position): boolean
  /** Reads the end and the changes before it, in a read that begins after the call. All callers share one. */
  read(): Promise<Position>
  /** Takes changes that this process has just committed. Returns false when changes before them are missing. */
  offer(position: Position, changes: readonly Change[]): boolean
  /** Whether one of the changes after the position that are in memory meets the condition. */
  some(position: Position, condition: (change: Change) => boolean): boolean
  /** Changes after the position, in order, not always all of them. OUT_OF_RANGE: unknown, or no longer kept. */
  after(position: Position): Promise<readonly Change[]>
}

/** `onMove` is called when the end has moved. */
export async function openRecentChanges(db: Database, onMove: () => void): Promise<RecentChanges> {
  let end = onlyRow((await db.query<Position>(HEAD, 'stream-head')).rows)
  let recent: Change[] = [] // without gaps, up to `end`
  let bytes = 0

  const has = ({ timeline, number }: Position): boolean => timeline === end.timeline && number <= end.number

  function moveTo(position: Position): void {
    end = position
    metrics.changeLogPosition.set({ schema: db.schema }, position.number)
  }
  moveTo(end)

  function extend(changes: readonly Change[]): void {
    for (const change of changes) {
      recent.push({ ...change, json: ownBytes(change.json) })
      bytes += change.json.length
    }
    moveTo({ timeline: end.timeline, number: end.number + changes.length })
    while (recent.length > RECENT_CHANGES || (bytes > RECENT_BYTES && recent.length > 1)) {
      recent = recent.slice(recent.length >> 1)
      bytes = recent.reduce((sum, { json }) => sum + json.length, 0)
    }
  }

  function restart(at: Position): void {
    moveTo(at)
    recent = []
    bytes = 0
  }

  async function readOn(): Promise<Position> {
    for (;;) {
      const from = end
      const { head, changes } = await read(db, from.number)
      const last = changes.at(-1)?.number ?? from.number
      const hasGap = last < head.number && changes.length < READ_CHANGES
      if (head.timeline !== end.timeline || head.number < from.number || hasGap || !isDense(changes, from)) {
        restart(head)
        onMove()
        return head
      }
      const fresh = changes.filter(({ number }) => number > end.number) // own commits may have come meanwhile
      if (fresh.length > 0) {
        extend(fresh)
        onMove()
      }
      if (last >= head.number) return head
    }
  }
  const readAll = coalesced(readOn)

  return {
    end: () => end,
    has,
    read: readAll,

    offer({ timeline, number }, changes) {
      const [first] = changes
      if (timeline !== end.timeline || !first) return has({ timeline, number })
      if (number <= end.number) return true
      if (first.number > end.number + 1) return false
      extend(changes.filter(({ number }) => number > end.number))
      onMove()
      return true
    },

    some: (position, condition) =>
      recent.slice(Math.max(0, recent.length - Math.max(0, end.number - position.number))).some(condition),

    async after(position) {
      if (!has(position)) await readAll()
      if (!has(position)) throw new Fault('OUT_OF_RANGE')
      const missing = end.number - position.number
      if (missing <= recent.length)
        return recent.slice(recent.length - missing, recent.length - missing + READ_CHANGES)
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
             from change where number > ${after} order by number limit ${READ_CHANGES}) as next on true
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
