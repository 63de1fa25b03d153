import { randomUUID } from 'node:crypto'
import { coalesced, openOutage } from '@overlay/process/async'
import { Fault } from '@overlay/rpc'
import type { Bus } from '@overlay/store/change-log'
import { type Db, isAway } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import {
  CLEANUP_POLLS,
  LEASE_MARGIN_MS,
  LEASE_MS,
  PRESENCE_NOTIFICATION_BYTES,
  PRESENCE_ROWS_PER_WRITE,
} from '../limits.js'
import {
  deleteDeadReplicas,
  deleteReplica,
  liveReplicas,
  type PresenceRow,
  presenceOf,
  type ReplicaRow,
  renewLease,
  takeReplicaId,
  writePresence,
} from '../store/presence.js'
import { openPresenceMemory } from './presence-memory.js'
import type { RouterPresence } from './router-presence.js'

export interface PresenceOptions {
  readonly db: Db
  readonly bus: Pick<Bus, 'publish' | 'subscribe' | 'onChange'>
  readonly log: Logger
  /** Controller id of this replica. Undefined: it takes no connections and has no lease. */
  readonly replicaId: string | undefined
  readonly leaseMs?: number
}

/** The presence of routers, and what this replica writes of its own. */
export interface OwnPresence extends RouterPresence, AsyncDisposable {
  /** Replaces the row of a router. Resolves once it is written, or refused; fails while the database is unavailable. */
  put(row: PresenceRow): Promise<void>
  /** Its row is deleted soon. */
  remove(routerId: string): void
  /** Resolves when all changes before the call are written. Fails while the database is unavailable. */
  saved(): Promise<void>
  /** Another process has the id of this replica: its routers must leave. */
  onLost(listener: () => void): void
}

const SUBJECT = 'overlay.sessions.presence'

/** Notification to other replicas. Without rows: they must be read. */
interface Notification {
  readonly id: string
  readonly incarnation: string
  readonly version: number
  readonly saved?: readonly PresenceRow[]
  readonly gone?: readonly string[]
  readonly isStopped?: boolean
}

/** Renews the lease of this replica, writes its rows, and follows those of the others by notifications and by polling. */
export async function openPresence(options: PresenceOptions): Promise<OwnPresence> {
  const { db, bus, log, replicaId, leaseMs = LEASE_MS } = options
  const own = replicaId === undefined ? undefined : { id: replicaId, incarnation: randomUUID() }
  const memory = openPresenceMemory(replicaId)
  const rows = new Map<string, PresenceRow>() // of this replica
  const dirty = new Set<string>()
  const refused = new Set<string>() // rows that the database refuses; retried rarely
  let lost: (() => void) | undefined
  let polls = 0
  const outage = openOutage((err) => log.warn({ err }, 'presence of routers not read; memory may be stale'), {
    lastsMs: 0,
  })
  let isStopped = false

  let version = 0
  const flush = coalesced(async () => {
    let rowsPerWrite = PRESENCE_ROWS_PER_WRITE
    while (own && dirty.size > 0) {
      const ids = [...dirty].slice(0, rowsPerWrite)
      const saved = ids.flatMap((id) => rows.get(id) ?? [])
      const gone = ids.filter((id) => !rows.has(id))
      for (const id of ids) dirty.delete(id)
      try {
        const written = await writePresence(db, own, saved, gone, version)
        if (written === undefined)
          throw new Fault('UNAVAILABLE', undefined, new Error('the replica has no lease'))
        version = written
        const notification: Notification = { ...own, version, saved, gone }
        const isSmall = JSON.stringify(notification).length < PRESENCE_NOTIFICATION_BYTES
        bus.publish(SUBJECT, isSmall ? notification : { ...own, version })
      } catch (err) {
        const isOfOneRow = !isAway(err) && ids.length === 1
        if (isOfOneRow) log.error({ err, routerId: ids[0] }, 'presence of a router cannot be written')
        for (const id of ids) (isOfOneRow ? refused : dirty).add(id)
        if (isAway(err)) throw err
        rowsPerWrite = 1 // a row that cannot be written must not keep others back
      }
    }
  })

  /**
   * Until then, replicas without a lease are not dropped: the database was unavailable for longer than a lease, or has lost all of
   * them in a crash, and each replica renews its own at its next poll.
   */
  let renewedBy = Number.NEGATIVE_INFINITY
  let lookedAt = performance.now()

  /** Returns the replicas whose lease lives. */
  async function renew(): Promise<readonly ReplicaRow[]> {
    if (!own || isStopped) return liveReplicas(db)
    const { lease, live } = await renewLease(db, own, leaseMs)
    if (lease !== 'renewed') renewedBy = performance.now() + leaseMs
    if (lease === 'lost') {
      const now = await liveReplicas(db) // the other process may have taken the id since the snapshot of the statement
      if (now.some(({ id }) => id === own.id)) {
        log.error({ replicaId: own.id }, 'another process has the controller id of this replica')
        lost?.()
        return now
      }
      await takeReplicaId(db, own, leaseMs)
    }
    if (lease !== 'renewed') for (const id of rows.keys()) dirty.add(id)
    if (dirty.size > 0) await flush()
    return live
  }

  async function follow(live: readonly ReplicaRow[]): Promise<void> {
    const stale = memory.compare(live, performance.now() > renewedBy)
    if (stale.length > 0) for (const replica of await presenceOf(db, stale)) memory.load(replica)
    // polls again when the next lease ends: not up to two seconds later
    const others = live.filter(({ id }) => id !== own?.id)
    const nextMs = Math.min(...others.map(({ leaseMs }) => leaseMs)) + LEASE_MARGIN_MS
    if (nextMs < everyMs) expiry = setTimeout(() => void poll(), nextMs)
  }

  const poll = coalesced(async () => {
    clearTimeout(expiry)
    const startedAt = performance.now()
    try {
      const live = await renew()
      if (startedAt - lookedAt > leaseMs) renewedBy = startedAt + leaseMs
      lookedAt = startedAt
      await follow(live)
      if (polls++ % CLEANUP_POLLS === 0) {
        await deleteDeadReplicas(db)
        for (const id of refused) dirty.add(id)
        refused.clear()
      }
      outage.works()
    } catch (err) {
      outage.failed(err)
    }
  })

  const everyMs = leaseMs / 3
  let expiry: NodeJS.Timeout | undefined
  if (own) {
    await takeReplicaId(db, own, leaseMs)
    memory.load({ ...own, version: 0, rows: [] })
    bus.publish(SUBJECT, { ...own, version: 0 })
  }
  const notifications = bus.subscribe(SUBJECT, (message) => {
    const notification = message as Notification
    if (notification.id === own?.id) {
      if (notification.incarnation !== own.incarnation) void poll()
    } else if (notification.isStopped) memory.drop(notification.id)
    else if (!memory.apply(notification)) void poll()
  })
  const reconnects = bus.onChange((connected) => connected && void poll())
  await poll()
  const polling = setInterval(() => void poll(), everyMs)

  return {
    ...memory,
    put(row) {
      rows.set(row.routerId, row)
      dirty.add(row.routerId)
      if (own) memory.put(own.id, row)
      return flush()
    },
    remove(routerId) {
      if (!rows.delete(routerId)) return
      dirty.add(routerId)
      if (own) memory.remove(own.id, routerId)
      flush().catch(() => undefined) // the next poll tries again
    },
    saved: flush,
    onLost(listener) {
      lost = listener
    },
    async [Symbol.asyncDispose]() {
      isStopped = true
      clearInterval(polling)
      notifications[Symbol.dispose]()
      reconnects[Symbol.dispose]()
      await poll()
      outage[Symbol.dispose]()
      clearTimeout(expiry)
      if (!own) return
      try {
        await deleteReplica(db, own)
        bus.publish(SUBJECT, { ...own, version: 0, isStopped: true })
      } catch (err) {
        log.warn({ err }, 'lease not given back; it ends by itself')
      }
    },
  }
}
