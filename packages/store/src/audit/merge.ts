import { type Cursor, compareCursors } from './cursor.js'
import type { SchemaChange } from './read.js'

/** The answer of one schema. */
export interface SchemaPage {
  readonly schema: string
  readonly changes: readonly SchemaChange[]
  readonly isComplete: boolean
  /** Oldest first: later commits cannot add changes before this time. */
  readonly settledMs: number
}

export interface ChangeWithCursor extends SchemaChange, Cursor {}

/** A page of the audit of all schemas. */
export interface Page {
  readonly changes: readonly ChangeWithCursor[]
  /** Where the next page begins. Undefined, newest first: there is none. */
  readonly next: Cursor | undefined
}

export interface PageOptions {
  readonly oldestFirst: boolean
  readonly limit: number
}

/** The page of all schemas: their changes up to the cursor that the shortest page reaches. */
export function mergePages(pages: readonly SchemaPage[], { oldestFirst, limit }: PageOptions): Page {
  const compare = (a: Cursor, b: Cursor): number =>
    oldestFirst ? compareCursors(a, b) : compareCursors(b, a)
  const changes = pages.flatMap(({ schema, changes }) => changes.map((change) => ({ ...change, schema })))
  const [end] = pages.flatMap((page) => endOf(page, oldestFirst)).sort(compare)
  const known = end ? changes.filter((change) => compare(change, end) <= 0) : changes
  const sorted = known.sort(compare)
  if (sorted.length <= limit) return { changes: sorted, next: end }
  const shown = sorted.slice(0, limit)
  return { changes: shown, next: shown.at(-1) }
}

/** The cursor up to which the page has all changes of its schema. None: it has all. */
function endOf({ schema, changes, isComplete, settledMs }: SchemaPage, oldestFirst: boolean): Cursor[] {
  const last = changes.at(-1)
  if (!isComplete && last) return [{ ...last, schema }]
  return oldestFirst ? [{ atMs: settledMs, schema: '', id: 0 }] : []
}
