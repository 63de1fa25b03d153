import { createHash } from 'node:crypto'
import { metrics } from '@overlay/process'
import type { Position, Positions } from '@overlay/rpc'
import { isAtLeast } from '@overlay/store/change-log'
import { addTouched, emptyTouched, type Touched, touchedBytes, uniteTouched } from '../domain/touched.js'
import { CHECKPOINTS, JOURNAL_BYTES } from '../limits.js'

/**
 * A moment of all change logs. Of two, one contains the other, in all replicas: one statement reads it. The index orders
 * them. An even one says that a model was built from exactly this moment; with an odd one, it may have later changes, too.
 */
export interface Checkpoint {
  readonly index: number
  readonly timeline: string
  readonly heads: Positions
}

/** Orders the changes of all schemas as this replica applied them. */
export type Moment = number

/** What memory had: all up to the checkpoint. */
export interface Reached {
  readonly checkpoint: Checkpoint
  readonly moment: Moment
}

/** What a router may lack that has an index of any replica. */
export interface Missed {
  readonly touched: Touched
  /** The part of it that the router may have all the same. */
  readonly unsure: Touched
  /** What was touched later is not in it. */
  readonly moment: Moment
}

/** What one message of a schema touched: it has the changes after one position up to another. */
export interface Entry {
  readonly schema: string
  readonly after: Position | undefined
  readonly upto: Position
  readonly touched: Touched
}

/** What the last changes touched, in memory, and the checkpoints that this replica has seen. */
export function openJournal() {
  let entries: (Entry & { readonly bytes: number })[] = []
  /** The moment before the first entry. */
  let floor: Moment = 0
  let bytes = 0
  /** By schema: what memory had at the floor, and has now. */
  const floors = new Map<string, Position>()
  const ends = new Map<string, Position>()
  let checkpoints: Checkpoint[] = []
  let current: Reached | undefined
  const now = (): Moment => floor + entries.length
  /** The last answer: many routers ask for the same. */
  let united: { readonly from: Moment; readonly upto: Moment; readonly touched: Touched } | undefined

  function forget(count: number): void {
    for (const entry of entries.slice(0, count)) {
      floors.set(entry.schema, entry.upto)
      bytes -= entry.bytes
    }
    entries = entries.slice(count)
    floor += count
  }

  function note(heads: Positions): Checkpoint {
    const checkpoint = checkpointOf(heads)
    const last = checkpoints.at(-1)
    if (last && last.timeline !== checkpoint.timeline) checkpoints = []
    else if (last && last.index >= checkpoint.index) return last
    checkpoints.push(checkpoint)
    if (checkpoints.length > CHECKPOINTS) checkpoints = checkpoints.slice(CHECKPOINTS / 4)
    return checkpoint
  }

  /** Whether nothing after these heads has touched memory. */
  const isAt = (heads: Positions): boolean =>
    [...ends].every(([schema, end]) => isAtLeast(heads[schema], end))

  return {
    now,
    note,
    isAt,
    current: () => current,
    /** A load has ended: what it has changed is not known. */
    restart(schema: string, upto: Position): void {
      ends.set(schema, upto)
      for (const [schema, end] of ends) floors.set(schema, end)
      floor = now() + 1
      entries = []
      bytes = 0
      metrics.routerModelJournal.set(0)
    },
    add(entry: Entry): void {
      const size = touchedBytes(entry.touched)
      entries.push({ ...entry, bytes: size })
      ends.set(entry.schema, entry.upto)
      bytes += size
      if (bytes > JOURNAL_BYTES) forget(Math.ceil(entries.length / 4))
      metrics.routerModelJournal.set(bytes)
    },
    /** Memory contains these heads now. */
    reach(heads: Positions): Reached {
      const { index, ...rest } = note(heads)
      const checkpoint = { index: isAt(rest.heads) ? index : index + 1, ...rest }
      const isOlder =
        current?.checkpoint.timeline === rest.timeline && current.checkpoint.index > checkpoint.index
      current = { checkpoint: isOlder ? (current?.checkpoint ?? checkpoint) : checkpoint, moment: now() }
      return current
    },
    /** Undefined: the journal, or the list of checkpoints, begins later. */
    async missedBy(
      timeline: string,
      index: number,
      breathe: () => Promise<void> | undefined,
    ): Promise<Missed | undefined> {
      const isExact = index % 2 === 0
      const known = checkpoints.filter((one) => one.timeline === timeline)
      const lower = known.findLast((one) => one.index <= index)
      if (!lower || [...floors].some(([schema, end]) => !isAtLeast(lower.heads[schema], end)))
        return undefined
      const upper = isExact ? known.find((one) => one.index >= index) : undefined
      const lacking = entries.filter(({ schema, upto }) => !isAtLeast(lower.heads[schema], upto))
      const unsure = lacking.filter(
        ({ schema, after }) => !upper || !after || !isAtLeast(after, upper.heads[schema]),
      )
      const [touched, unsureTouched] = [emptyTouched(), emptyTouched()]
      const missed = { touched, unsure: unsureTouched, moment: now() }
      for (const entry of lacking) {
        addTouched(touched, entry.touched)
        await breathe()
      }
      for (const entry of unsure) {
        addTouched(unsureTouched, entry.touched)
        await breathe()
      }
      return missed
    },
    /** What was touched after a moment. Undefined: the journal begins later. */
    since(moment: Moment): Touched | undefined {
      if (moment < floor) return undefined
      if (united?.from !== moment || united.upto !== now())
        united = { from: moment, upto: now(), touched: touchedBy(entries.slice(moment - floor)) }
      return united.touched
    },
  }
}

export type Journal = ReturnType<typeof openJournal>

const touchedBy = (entries: readonly Entry[]): Touched => uniteTouched(entries.map(({ touched }) => touched))

/** An index is never 0, by which a router says that it has no model. */
export function checkpointOf(heads: Positions): Checkpoint {
  const schemas = Object.keys(heads).sort()
  const hash = createHash('sha256')
  let sum = 1
  for (const schema of schemas) {
    const { timeline = '', number = 0 } = heads[schema] ?? {}
    hash.update(`${schema} ${timeline}\n`)
    sum += number
  }
  return { index: 2 * sum, timeline: hash.digest('base64url').slice(0, 22), heads }
}
