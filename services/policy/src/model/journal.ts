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

/** What one message of a schema touched, up to a position. */
export interface Entry {
  readonly schema: string
  readonly upto: Position
  readonly touched: Touched
}

/** What the last changes touched, in memory, and the checkpoints through which it went. */
export function openJournal() {
  let entries: (Entry & { readonly bytes: number })[] = []
  /** The moment before the first entry. */
  let baseline: Moment = 0
  let bytes = 0
  /** By schema: the position of its last entry. */
  const ends = new Map<string, Position>()
  let loadedAt: Moment = 0
  /** Only exact ones. */
  let passed: Reached[] = []
  let current: Reached | undefined
  const now = (): Moment => baseline + entries.length
  /** The last answer: many routers ask for the same. */
  let united: { readonly from: Moment; readonly upto: Moment; readonly touched: Touched } | undefined

  function forget(count: number): void {
    for (const entry of entries.slice(0, count)) bytes -= entry.bytes
    entries = entries.slice(count)
    baseline += count
    passed = passed.filter(({ moment }) => moment >= baseline)
  }

  /**
   * Whether memory has nothing after these heads, which were read after the moment. A load may have rows that are newer
   * than its position, but none that are newer than heads that were read after it.
   */
  const isAt = (heads: Positions, readAfter: Moment): boolean =>
    readAfter >= loadedAt && [...ends].every(([schema, end]) => isAtLeast(heads[schema], end))

  function pass(reached: Reached): void {
    const last = passed.at(-1)?.checkpoint
    if (last && last.timeline !== reached.checkpoint.timeline) passed = []
    else if (last && last.index >= reached.checkpoint.index) return
    passed.push(reached)
    if (passed.length > CHECKPOINTS) passed = passed.slice(CHECKPOINTS / 4)
  }

  return {
    now,
    isAt,
    current: () => current,
    /** A load has ended: what it has changed is not known. */
    restart(schema: string, upto: Position): void {
      ends.set(schema, upto)
      forget(entries.length)
      baseline++
      loadedAt = baseline
      passed = []
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
    reach(heads: Positions, readAfter: Moment): Reached {
      const isExact = isAt(heads, readAfter)
      const { index, ...rest } = checkpointOf(heads)
      const checkpoint = { ...rest, index: isExact ? index : index + 1 }
      const isOlder =
        current?.checkpoint.timeline === rest.timeline && current.checkpoint.index > checkpoint.index
      current = { checkpoint: isOlder && current ? current.checkpoint : checkpoint, moment: now() }
      if (isExact) pass({ checkpoint, moment: now() })
      return current
    },
    /**
     * Memory went through the checkpoints around the index. In between, it took changes of different schemas in another
     * order than that in which they were made, so that it may have gone another way than the router. Undefined: that, or
     * the journal begins later.
     */
    async missedBy(
      timeline: string,
      index: number,
      yieldNow: () => Promise<void> | undefined,
    ): Promise<Missed | undefined> {
      const known = passed.filter(({ checkpoint }) => checkpoint.timeline === timeline)
      const lower = known.findLast(({ checkpoint }) => checkpoint.index <= index)
      if (!lower) return undefined
      const upper = index % 2 === 0 ? known.find(({ checkpoint }) => checkpoint.index >= index) : undefined
      const moment = now()
      const lacking = entries.slice(lower.moment - baseline)
      const unsureCount = (upper?.moment ?? moment) - lower.moment
      if (new Set(lacking.slice(0, unsureCount).map(({ schema }) => schema)).size > 1) return undefined
      const [touched, unsure] = [emptyTouched(), emptyTouched()]
      for (const [at, entry] of lacking.entries()) {
        addTouched(touched, entry.touched)
        if (at < unsureCount) addTouched(unsure, entry.touched)
        await yieldNow()
      }
      return { touched, unsure, moment }
    },
    /** What was touched after a moment. Undefined: the journal begins later. */
    since(moment: Moment): Touched | undefined {
      if (moment < baseline) return undefined
      if (united?.from !== moment || united.upto !== now()) {
        const later = entries.slice(moment - baseline)
        united = { from: moment, upto: now(), touched: uniteTouched(later.map(({ touched }) => touched)) }
      }
      return united.touched
    },
  }
}

export type Journal = ReturnType<typeof openJournal>

/** An index is never 0, by which a router says that it has no model. */
function checkpointOf(heads: Positions): Checkpoint {
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
