import { coalesced } from '@overlay/platform/async'
import type { Bus } from '@overlay/platform/change-log'
import type { Db } from '@overlay/platform/postgres'
import type { Logger } from 'pino'
import {
  isUpTo,
  type Noted,
  type Place,
  type Places,
  type Stored,
  updateTimes,
} from '../domain/update-times.js'
import { openExclusive } from '../store/exclusive.js'
import { readUpdates, writeUpdates } from '../store/service-updates.js'
import type { Missed } from './missed-updates.js'

/** Service-updates times: equal in every replica, kept over restarts, known at once where the change is. */
export interface Updates extends AsyncDisposable {
  /** In milliseconds; 0: nothing has changed for this identity. */
  of(identityId: string): number
  /** All streams are loaded up to here; what follows is noted. */
  begin(places: Places): void
  note(noted: Noted): void
  /** Everything up to here is noted. */
  moved(places: Places): void
  /** The identity was deleted at this place. */
  forget(identityId: string, place: Place): void
}

export interface Watcher {
  /** What happened after `from`, while nobody noted it. */
  missed(from: Places, upto: Places): Promise<Missed>
  /** These times are now others than were said before. */
  differ(ids: readonly string[] | 'all'): void
}

const IDENTITIES = 'identity' // the schema that they are of
const SUBJECT = 'overlay.policy.service-updates'
const TICK_MS = 1000
const GATHER_MS = 20 // other replicas hear of a change this much later; times leave here at once

/** One replica stores, the one that holds the lock; the others read what it stores, by hints and by looking. */
export async function openUpdates(
  db: Db,
  url: string,
  bus: Bus,
  log: Logger,
  { missed, differ }: Watcher,
): Promise<Updates> {
  const times = updateTimes()
  const lock = openExclusive(url, 'policy', 'service-updates')
  let begun: Places | undefined
  let applied: Places = {}
  let gone: { readonly id: string; readonly place: Place }[] = [] // until their rows are deleted, here or elsewhere
  let isComplete = false // of this tenure: what nobody noted has been made up for
  let wroteAt = Number.NEGATIVE_INFINITY
  let failing = false

  const take = (stored: Stored): void => {
    const ids = times.confirm(stored)
    if (ids === 'all' || ids.length > 0) differ(ids)
    const covered = stored.covered[IDENTITIES]
    gone = gone.filter(({ place }) => !(covered && isUpTo(place, covered)))
  }

  async function store(): Promise<void> {
    const [draft, covered, leaving] = [times.draft(), applied, gone.map(({ id }) => id)]
    const mayWait = performance.now() - wroteAt < TICK_MS || isSame(covered, times.covered())
    if (draft.isEmpty && leaving.length === 0 && mayWait) return
    const batch = await writeUpdates(lock, { ...draft, covered }, leaving)
    wroteAt = performance.now()
    take({ ...draft, batch, covered })
    bus.publish(SUBJECT, { batch })
  }

  async function look(): Promise<void> {
    const isHolder = begun !== undefined && (lock.isHeld() || (await lock.attempt()))
    if (!isHolder || !isComplete) take(await readUpdates(db, times.batch()))
    if (!isHolder || !begun) {
      isComplete = false
      return
    }
    if (!isComplete) {
      const unheard = await missed(times.covered(), begun)
      for (const one of unheard.noted) times.note(one)
      const place = begun[IDENTITIES]
      if (place) for (const id of unheard.gone) gone.push({ id, place })
    }
    isComplete = true
    await store()
  }
  let soon: NodeJS.Timeout | undefined
  const turn = coalesced(() => {
    clearTimeout(soon)
    soon = undefined
    return look().then(
      () => {
        failing = false
      },
      (err: unknown) => {
        if (!failing) log.warn({ err }, 'service-updates times not stored')
        failing = true
        isComplete &&= lock.isHeld()
      },
    )
  })

  times.confirm(await readUpdates(db, 0))
  const ticking = setInterval(turn, TICK_MS)
  const hints = bus.subscribe(SUBJECT, (hint) => {
    if ((hint as { batch: number }).batch > times.batch() && !lock.isHeld()) turn()
  })

  return {
    of: times.of,
    begin(places) {
      begun = places
      applied = places
      turn()
    },
    note: times.note,
    moved(places) {
      for (const [schema, place] of Object.entries(places)) {
        if (applied[schema]?.timeline === place.timeline) continue
        times.rebase(schema, place)
        if (schema === IDENTITIES) gone = gone.map(({ id }) => ({ id, place }))
      }
      applied = places
      if (lock.isHeld() && !times.draft().isEmpty) soon ??= setTimeout(turn, GATHER_MS)
    },
    forget(id, place) {
      times.forget(id)
      gone.push({ id, place })
    },
    async [Symbol.asyncDispose]() {
      clearInterval(ticking)
      clearTimeout(soon)
      hints[Symbol.dispose]()
      wroteAt = Number.NEGATIVE_INFINITY
      await turn()
      await lock[Symbol.asyncDispose]()
    },
  }
}

const isSame = (a: Places, b: Places): boolean =>
  ['policy', 'identity'].every(
    (schema) => a[schema]?.timeline === b[schema]?.timeline && a[schema]?.number === b[schema]?.number,
  )
