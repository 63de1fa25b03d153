/** A position in the change log of one schema. */
export interface Position {
  readonly timeline: string
  readonly number: number
}

/** On the same timeline, and not after it. */
export const isUpTo = (position: Position, last: Position): boolean =>
  position.timeline === last.timeline && position.number <= last.number

export type Positions = Readonly<Record<string, Position>>

/** A change that moved the service-updates time of these identities. */
export interface TimeUpdate {
  readonly schema: string
  readonly position: Position
  readonly atMs: number
  readonly ids: readonly string[] | 'all'
}

/** What one replica has stored for all. */
export interface StoredTimes {
  readonly batch: number
  /** No identity's time is older. */
  readonly everybodyAtMs: number
  /** Contains the changes up to these positions. */
  readonly covered: Positions
  /** The rows of later batches than the reader's. */
  readonly rows: readonly { readonly id: string; readonly atMs: number }[]
}

/**
 * When each identity's services last changed. The stored times are the truth. Until a change is stored, its time is what
 * this replica would store: the time of the change, which is nearly always the same.
 */
export function openUpdateTimes() {
  const rows = new Map<string, number>()
  let everybody = 0
  let covered: Positions = {}
  let batch = 0
  let pending: TimeUpdate[] = []
  const deleted = new Set<string>() // identities that pending updates may still name
  const draftRows = new Map<string, number>()
  let draftEverybody = 0
  let storedHighest = 0
  let highest = 0 // of the draft, too

  /** 0: never. */
  const of = (id: string): number =>
    draftRows.get(id) ?? Math.max(draftEverybody, everybody, rows.get(id) ?? 0)

  /** Clients compare for equality, so a time must move, though another schema's clock may be behind. */
  const after = (last: number, atMs: number): number => {
    const next = atMs > last ? atMs : last + 1
    highest = Math.max(highest, next)
    return next
  }
  const draw = ({ ids, atMs }: TimeUpdate): void => {
    if (ids === 'all') {
      draftEverybody = after(highest, atMs)
      draftRows.clear()
    } else for (const id of ids) if (!deleted.has(id)) draftRows.set(id, after(of(id), atMs))
  }
  const isCovered = ({ schema, position }: TimeUpdate): boolean => {
    const upto = covered[schema]
    return upto !== undefined && isUpTo(position, upto)
  }

  return {
    of,
    add(update: TimeUpdate): void {
      pending.push(update)
      draw(update)
    },
    /** Takes over the stored times. Returns the identities whose time differs from what `of` returned before. */
    adopt(stored: StoredTimes): readonly string[] | 'all' {
      const everybodyBefore = Math.max(draftEverybody, everybody)
      // no time was returned before the first batch: comparing a million rows would find all of them
      const isFirst = batch === 0 && stored.batch > 0 && pending.length === 0
      const ids = isFirst ? [] : [...new Set([...draftRows.keys(), ...stored.rows.map(({ id }) => id)])]
      const before = ids.map(of)
      for (const { id, atMs } of stored.rows) {
        rows.set(id, atMs)
        storedHighest = Math.max(storedHighest, atMs)
      }
      everybody = stored.everybodyAtMs
      storedHighest = Math.max(storedHighest, everybody)
      highest = storedHighest // what is pending is drawn again, to the same times
      covered = stored.covered
      batch = stored.batch
      draftRows.clear()
      draftEverybody = 0
      pending = pending.filter((update) => !isCovered(update))
      if (pending.length === 0) deleted.clear()
      for (const update of pending) draw(update)
      if (isFirst || Math.max(draftEverybody, everybody) !== everybodyBefore) return 'all'
      return ids.filter((id, i) => of(id) !== before[i])
    },
    /** The updates that are not stored. */
    draft: () => ({
      everybodyAtMs: Math.max(draftEverybody, everybody),
      rows: [...draftRows].map(([id, atMs]) => ({ id, atMs })),
      isEmpty: pending.length === 0,
    }),
    covered: () => covered,
    batch: () => batch,
    forget(id: string): void {
      rows.delete(id)
      draftRows.delete(id)
      deleted.add(id)
    },
    /** The schema has begun another timeline, which contains the updates of the old one. */
    rebase(schema: string, position: Position): void {
      pending = pending.map((update) =>
        update.schema === schema && update.position.timeline !== position.timeline
          ? { ...update, position }
          : update,
      )
    },
  }
}
