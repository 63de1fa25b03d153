import { createHash } from 'node:crypto'
import { metrics } from '@overlay/process'
import type { Position, Positions } from '@overlay/rpc'
import { isAtLeast } from '@overlay/store/change-log'
import { type Touched, touchedBytes, uniteTouched } from '../domain/touched.js'
import { CHECKPOINTS, JOURNAL_BYTES } from '../limits.js'

/** A moment of all change logs. Of two, one contains the other, in all replicas: one statement reads it. */
export interface Checkpoint {
  readonly index: number
  readonly timeline: string
  readonly heads: Positions
}

interface Entry {
  readonly schema: string
  readonly upto: Position
  readonly touched: Touched
  readonly bytes: number
}

/** Orders the changes of all schemas as this replica applied them. */
export type Moment = number

/**
 * What the last changes touched, in memory, and the indexes that this replica has seen. A router comes with the index that
 * another replica gave it: everything up to the greatest index here that is not above it has reached the router.
 */
export function openJournal() {
  let entries: Entry[] = []
  /** The moment before the first entry. */
  let floor: Moment = 0
  let bytes = 0
  /** By schema: what memory had at the floor. */
  const floors = new Map<string, Position>()
  let checkpoints: Checkpoint[] = []
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

  return {
    now,
    /** A load has ended: what it has changed is not known. */
    restart(schema: string, upto: Position): void {
      for (const { schema, upto } of entries) floors.set(schema, upto)
      floors.set(schema, upto)
      floor = now() + 1
      entries = []
      bytes = 0
      metrics.routerModelJournal.set(0)
    },
    /** A message of changes is in memory. */
    add(schema: string, upto: Position, touched: Touched): void {
      const size = touchedBytes(touched)
      entries.push({ schema, upto, touched, bytes: size })
      bytes += size
      if (bytes > JOURNAL_BYTES) forget(Math.ceil(entries.length / 4))
      metrics.routerModelJournal.set(bytes)
    },
    note(heads: Positions): Checkpoint {
      const checkpoint = checkpointOf(heads)
      const last = checkpoints.at(-1)
      if (last && last.timeline !== checkpoint.timeline) checkpoints = []
      else if (last && last.index >= checkpoint.index) return last
      checkpoints.push(checkpoint)
      if (checkpoints.length > CHECKPOINTS) checkpoints = checkpoints.slice(CHECKPOINTS / 4)
      return checkpoint
    },
    /** A moment after which everything is that a router with this index may lack. Undefined: the journal begins later. */
    momentOf(timeline: string, index: number): Moment | undefined {
      const checkpoint = checkpoints.findLast((one) => one.timeline === timeline && one.index <= index)
      if (!checkpoint) return undefined
      const { heads } = checkpoint
      for (const [schema, position] of floors) if (!isAtLeast(heads[schema], position)) return undefined
      const first = entries.findIndex(({ schema, upto }) => !isAtLeast(heads[schema], upto))
      return first < 0 ? now() : floor + first
    },
    /** What was touched after a moment. Undefined: the journal begins later. */
    since(moment: Moment): Touched | undefined {
      if (moment < floor) return undefined
      if (united?.from !== moment || united.upto !== now()) {
        const later = entries.slice(moment - floor)
        united = { from: moment, upto: now(), touched: uniteTouched(later.map(({ touched }) => touched)) }
      }
      return united.touched
    },
  }
}

export type Journal = ReturnType<typeof openJournal>

/** An index is never 0, by which a router says that it has no model. */
export function checkpointOf(heads: Positions): Checkpoint {
  const schemas = Object.keys(heads).sort()
  const hash = createHash('sha256')
  let index = 1
  for (const schema of schemas) {
    const { timeline = '', number = 0 } = heads[schema] ?? {}
    hash.update(`${schema} ${timeline}\n`)
    index += number
  }
  return { index, timeline: hash.digest('base64url').slice(0, 22), heads }
}
