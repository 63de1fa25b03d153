/** Place in the change log of one schema. */
export interface Place {
  readonly timeline: string
  readonly number: number
}

/** On the same timeline, and not after it. */
export const isUpTo = (place: Place, last: Place): boolean =>
  place.timeline === last.timeline && place.number <= last.number

export type Places = Readonly<Record<string, Place>>

/** A change moved the service-updates time of these identities. */
export interface Noted {
  readonly schema: string
  readonly place: Place
  readonly atMs: number
  readonly ids: readonly string[] | 'all'
}

/** What one replica has stored for all. */
export interface Stored {
  readonly batch: number
  /** No identity's time is older. */
  readonly everybodyAtMs: number
  /** Changes up to here are in it. */
  readonly covered: Places
  /** Rows since the batch that was known. */
  readonly rows: readonly { readonly id: string; readonly atMs: number }[]
}

/**
 * When each identity's services last changed. What is stored is the truth; what is not yet stored is what this
 * replica would store: as the time is that of the change, that is nearly always the same.
 */
export interface UpdateTimes {
  /** 0: never. */
  of(id: string): number
  note(noted: Noted): void
  /** Takes over what is stored. Answers whose time is now another than was said before. */
  confirm(stored: Stored): readonly string[] | 'all'
  /** What has been noted and is not stored. */
  draft(): Pick<Stored, 'everybodyAtMs' | 'rows'> & { readonly isEmpty: boolean }
  covered(): Places
  batch(): number
  forget(id: string): void
  /** The schema has begun another timeline: what was noted on the old one is part of its beginning. */
  rebase(schema: string, place: Place): void
}

export function updateTimes(): UpdateTimes {
  const rows = new Map<string, number>()
  let everybody = 0
  let covered: Places = {}
  let batch = 0
  let noted: Noted[] = []
  const gone = new Set<string>() // deleted identities, which pending notes may still name
  const draftRows = new Map<string, number>()
  let draftEverybody = 0
  let highest = 0

  const of = (id: string): number =>
    draftRows.get(id) ?? Math.max(draftEverybody, everybody, rows.get(id) ?? 0)

  /** Clients compare for equality, so a time must move, though another schema's clock may be behind. */
  const after = (known: number, atMs: number): number => {
    const next = atMs > known ? atMs : known + 1
    highest = Math.max(highest, next)
    return next
  }
  const draw = ({ ids, atMs }: Noted): void => {
    if (ids === 'all') {
      draftEverybody = after(highest, atMs)
      draftRows.clear()
    } else for (const id of ids) if (!gone.has(id)) draftRows.set(id, after(of(id), atMs))
  }
  const isCovered = ({ schema, place }: Noted): boolean => {
    const at = covered[schema]
    return at !== undefined && isUpTo(place, at)
  }

  return {
    of,
    note(one) {
      noted.push(one)
      draw(one)
    },
    confirm(stored) {
      const saidEverybody = Math.max(draftEverybody, everybody)
      const concerned = [...new Set([...draftRows.keys(), ...stored.rows.map(({ id }) => id)])]
      const said = concerned.map(of)
      for (const { id, atMs } of stored.rows) {
        rows.set(id, atMs)
        highest = Math.max(highest, atMs)
      }
      everybody = stored.everybodyAtMs
      highest = Math.max(highest, everybody)
      covered = stored.covered
      batch = stored.batch
      draftRows.clear()
      draftEverybody = 0
      noted = noted.filter((one) => !isCovered(one))
      if (noted.length === 0) gone.clear()
      for (const one of noted) draw(one)
      if (Math.max(draftEverybody, everybody) !== saidEverybody) return 'all'
      return concerned.filter((id, at) => of(id) !== said[at])
    },
    draft: () => ({
      everybodyAtMs: Math.max(draftEverybody, everybody),
      rows: [...draftRows].map(([id, atMs]) => ({ id, atMs })),
      isEmpty: noted.length === 0,
    }),
    covered: () => covered,
    batch: () => batch,
    forget(id) {
      rows.delete(id)
      draftRows.delete(id)
      gone.add(id)
    },
    rebase(schema, place) {
      noted = noted.map((one) =>
        one.schema === schema && one.place.timeline !== place.timeline ? { ...one, place } : one,
      )
    },
  }
}
