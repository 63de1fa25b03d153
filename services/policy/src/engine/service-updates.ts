import { coalesced, openOutage } from '@overlay/process/async'
import type { Bus } from '@overlay/store/change-log'
import type { Db } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import {
  isUpTo,
  openUpdateTimes,
  type Position,
  type Positions,
  type StoredTimes,
  type TimeUpdate,
} from '../domain/update-times.js'
import { MOST_STORING, STORE_GATHER_MS, TICK_MS } from '../limits.js'
import { openExclusiveLock } from '../store/exclusive-lock.js'
import { readUpdates, writeUpdates } from '../store/service-updates.js'
import type { MissedUpdates } from './missed-updates.js'

/** Service-updates times: equal in every replica, kept over restarts, current at once where the change is applied. */
export interface ServiceUpdates extends AsyncDisposable {
  /** In milliseconds; 0: nothing has changed for this identity. */
  of(identityId: string): number
  /** All change logs are loaded up to these positions. Later changes are added. */
  start(positions: Positions): void
  add(update: TimeUpdate): void
  /** All changes up to these positions are added. */
  advance(positions: Positions): void
  /** The identity was deleted at this position. */
  forget(identityId: string, position: Position): void
}

export interface Watcher {
  /** The changes between these positions, which no replica has added. */
  missed(from: Positions, upto: Positions): Promise<MissedUpdates>
  /** The times of these identities differ from what `of` returned before. */
  differ(ids: readonly string[] | 'all'): void
}

const IDENTITIES = 'identity' // the schema of identities
const SUBJECT = 'overlay.policy.service-updates'

/** The replica that holds the lock stores the times. The others read what it stores, on notifications and once per second. */
export async function openServiceUpdates(
  db: Db,
  url: string,
  bus: Bus,
  log: Logger,
  { missed, differ }: Watcher,
): Promise<ServiceUpdates> {
  const times = openUpdateTimes()
  const lock = openExclusiveLock(url, 'policy', 'service-updates')
  let started: Positions | undefined
  let applied: Positions = {}
  let deleted: { readonly id: string; readonly position: Position }[] = [] // until a replica has deleted their rows
  let isComplete = false // since this replica holds the lock: missed changes are added
  let wroteAt = Number.NEGATIVE_INFINITY
  let pauseMs = STORE_GATHER_MS

  const adopt = (stored: StoredTimes): void => {
    const ids = times.adopt(stored)
    if (ids === 'all' || ids.length > 0) differ(ids)
    const covered = stored.covered[IDENTITIES]
    deleted = deleted.filter(({ position }) => !(covered && isUpTo(position, covered)))
  }

  async function store(): Promise<void> {
    const [draft, covered, leaving] = [times.draft(), applied, deleted.map(({ id }) => id)]
    const mayWait = performance.now() - wroteAt < TICK_MS || isSame(covered, times.covered())
    if (draft.isEmpty && leaving.length === 0 && mayWait) return
    const startedAt = performance.now()
    const batch = await writeUpdates(lock, { ...draft, covered }, leaving)
    wroteAt = performance.now()
    pauseMs = Math.min(TICK_MS, Math.max(STORE_GATHER_MS, (wroteAt - startedAt) / MOST_STORING))
    adopt({ ...draft, batch, covered })
    bus.publish(SUBJECT, { batch })
  }

  async function look(): Promise<void> {
    const isHolder = started !== undefined && (lock.isHeld() || (await lock.attempt()))
    if (!isHolder || !isComplete) adopt(await readUpdates(db, times.batch()))
    if (!isHolder || !started) {
      isComplete = false
      return
    }
    if (!isComplete) {
      const { updates, deletedIds } = await missed(times.covered(), started)
      for (const update of updates) times.add(update)
      const position = started[IDENTITIES]
      if (position) for (const id of deletedIds) deleted.push({ id, position })
    }
    isComplete = true
    await store()
  }
  let soon: NodeJS.Timeout | undefined
  const outage = openOutage((err) => log.warn({ err }, 'service-updates times not stored'), { lastsMs: 0 })
  const turn = coalesced(() => {
    clearTimeout(soon)
    soon = undefined
    return look().then(outage.works, (err: unknown) => {
      outage.failed(err)
      isComplete &&= lock.isHeld()
    })
  })

  times.adopt(await readUpdates(db, 0))
  const ticking = setInterval(turn, TICK_MS)
  const notifications = bus.subscribe(SUBJECT, (notification) => {
    if ((notification as { batch: number }).batch > times.batch() && !lock.isHeld()) void turn()
  })

  return {
    of: times.of,
    start(positions) {
      started = positions
      applied = positions
      void turn()
    },
    add: times.add,
    advance(positions) {
      for (const [schema, position] of Object.entries(positions)) {
        if (applied[schema]?.timeline === position.timeline) continue
        times.rebase(schema, position)
        if (started) started = { ...started, [schema]: position }
        if (schema === IDENTITIES) deleted = deleted.map(({ id }) => ({ id, position }))
      }
      applied = positions
      if (!soon && lock.isHeld() && !times.draft().isEmpty) soon = setTimeout(turn, pauseMs)
    },
    forget(id, position) {
      times.forget(id)
      deleted.push({ id, position })
    },
    async [Symbol.asyncDispose]() {
      clearInterval(ticking)
      clearTimeout(soon)
      notifications[Symbol.dispose]()
      wroteAt = Number.NEGATIVE_INFINITY
      await turn()
      outage[Symbol.dispose]()
      await lock[Symbol.asyncDispose]()
    },
  }
}

const isSame = (a: Positions, b: Positions): boolean =>
  ['policy', 'identity'].every(
    (schema) => a[schema]?.timeline === b[schema]?.timeline && a[schema]?.number === b[schema]?.number,
  )
