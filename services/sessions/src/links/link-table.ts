import { coalesced, openOutage, runPeriodically } from '@overlay/process/async'
import type { Bus } from '@overlay/store/change-log'
import { batch, type Db } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import type { Sql } from 'sql-template-tag'
import {
  CHECKS_WITH_BUS,
  FORGET_CHECKS,
  LINK_CHECK_MS,
  LINKS_PER_NOTIFICATION,
  LINKS_PER_STATEMENT,
  REPORTS_PER_STATEMENT,
} from '../limits.js'
import {
  acceptLinks,
  type ConnectedLink,
  confirmLinks,
  deleteFailedLinks,
  deleteLinks,
  type LinkAcceptance,
  type LinkFault,
  type LinkLatency,
  type LinkRow,
  type LinkSettings,
  type ReportedLink,
  readLinks,
  reportLinks,
  STALE,
  setConnections,
  setLatencies,
  setLinkSettings,
  sumOfLinks,
} from '../store/link.js'
import { type DeletedLink, type LinkListener, openLinkMemory } from './link-memory.js'

export interface LinkTableOptions {
  readonly db: Db
  readonly bus: Pick<Bus, 'publish' | 'subscribe' | 'connected' | 'onChange'>
  readonly log: Logger
  /** Controller id of this replica. */
  readonly replicaId: string
  readonly listener: LinkListener
  readonly checkMs?: number
}

/** The links of all replicas. Reads are from memory. Writes return once they are in the database and in memory. */
export interface LinkTable extends AsyncDisposable {
  get(id: string): LinkRow | undefined
  all(): Iterable<LinkRow>
  /** Links that begin or end at the router. */
  of(routerId: string): readonly LinkRow[]
  /** Stores what a router reports about its links. Returns the links that are new or dialed again. */
  report(links: readonly ReportedLink[]): Promise<readonly LinkRow[]>
  /** Stores that a router has links of others. Links that it accepts are confirmed, now or when they are reported. */
  accept(acceptances: readonly LinkAcceptance[]): Promise<void>
  /** Deletes a link that has failed. Empty: it is unknown here, has been dialed again, or is not the router's. */
  fail(fault: LinkFault): Promise<readonly LinkRow[]>
  setLatencies(latencies: readonly LinkLatency[]): Promise<void>
  /** Stores which connections links of this source consist of. No link may occur twice. */
  connect(sourceId: string, links: readonly ConnectedLink[]): Promise<void>
  set(id: string, settings: LinkSettings): Promise<LinkRow | undefined>
  delete(ids: readonly string[]): Promise<readonly LinkRow[]>
  /** Of these links, deletes those whose source is offline or whose destination does not exist. */
  deleteStale(ids: readonly string[]): Promise<readonly LinkRow[]>
}

const SUBJECT = 'overlay.sessions.links'
const LIMITS = { limit: REPORTS_PER_STATEMENT, sizeLimit: LINKS_PER_STATEMENT }

interface Notification {
  readonly replicaId: string
  readonly changed: readonly LinkRow[]
  readonly deleted: readonly DeletedLink[]
}

/** What one message of a router says. */
type Report = { readonly links: readonly ReportedLink[] } | { readonly fault: LinkFault }

/**
 * Replicas send each other the rows that they have changed. A replica that has lost a notification, or cannot receive any,
 * notices by the sums of the rows within some seconds and reads all of them.
 */
export async function openLinkTable(options: LinkTableOptions): Promise<LinkTable> {
  const { db, bus, log, replicaId, listener, checkMs = LINK_CHECK_MS } = options
  const memory = openLinkMemory(listener)
  let checks = 0
  let differed = false
  const outage = openOutage((err) => log.warn({ err }, 'links not read; memory may be stale'), {
    lastsMs: 0,
  })
  let isUnsure = false // the last write may have had its effect

  function share(changed: readonly LinkRow[], deleted: readonly LinkRow[] = []): void {
    memory.apply(changed, deleted)
    const versions = deleted.map(({ id, version }) => ({ id, version }))
    for (const [changes, deletions] of chunks(changed, versions)) {
      const notification: Notification = { replicaId, changed: changes, deleted: deletions }
      bus.publish(SUBJECT, notification)
    }
  }

  const load = coalesced(async () => {
    const end = memory.startLoad()
    let rows: readonly LinkRow[] | undefined
    try {
      rows = await readLinks(db)
    } finally {
      end(rows ?? [...memory.all()])
    }
  })

  async function check(): Promise<void> {
    const connected = bus.connected()
    checks++
    if (checks % FORGET_CHECKS === 0) memory.forgetDeletions()
    if (connected && !differed && checks % CHECKS_WITH_BUS !== 0) return
    const [stored, own] = [await sumOfLinks(db), memory.sums()]
    const differs = stored.count !== own.count || stored.versions !== own.versions
    // a notification may be under way
    if (differs && (differed || !connected)) await load()
    differed = differs && !differed && connected
  }

  const safely = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work()
      outage.works()
    } catch (err) {
      outage.failed(err)
    }
  }

  /** Reports before faults: routers report a link before its fault, and faults of earlier iterations have no effect. */
  const write = batch(
    async (reports: readonly Report[]): Promise<(readonly LinkRow[])[]> => {
      if (isUnsure) await load()
      isUnsure = true
      const links = newest(reports.flatMap((report) => ('links' in report ? report.links : [])))
      const changed = links.length > 0 ? await reportLinks(db, replicaId, links) : []
      share(changed)
      const open = changed.filter(({ isConfirmed }) => isConfirmed === false)
      if (open.length > 0) share(await confirmLinks(db, open))
      const faults = reports.flatMap((report) => ('fault' in report ? [report.fault] : []))
      const deleted = faults.length > 0 ? await deleteFailedLinks(db, faults) : []
      share([], deleted)
      isUnsure = false
      const [stored, failed] = [byId(changed), byId(deleted)]
      return reports.map((report) => {
        if ('links' in report)
          return report.links.flatMap(({ id, sourceId }) => {
            const link = stored.get(id)
            return link?.sourceId === sourceId ? [link] : []
          })
        const link = failed.get(report.fault.id)
        failed.delete(report.fault.id) // of two reports, the first one
        return link ? [link] : []
      })
    },
    { ...LIMITS, sizeOf: (report) => ('links' in report ? report.links.length : 1) },
  )

  const accept = batch(
    async (lists: readonly (readonly LinkAcceptance[])[]) => {
      const acceptances = lists.flat()
      await acceptLinks(db, acceptances)
      const ends = acceptances.map(({ listenerId, dialerId }) => ({
        sourceId: dialerId,
        destinationId: listenerId,
      }))
      share(await confirmLinks(db, ends))
      return lists.map(() => undefined)
    },
    { ...LIMITS, sizeOf: (list) => list.length },
  )

  const measure = batch(
    async (measured: readonly (readonly LinkLatency[])[]) => {
      share(await setLatencies(db, measured.flat()))
      return measured.map(() => undefined)
    },
    { ...LIMITS, sizeOf: (list) => list.length },
  )

  async function remove(ids: readonly string[], condition?: Sql): Promise<readonly LinkRow[]> {
    const deleted = await deleteLinks(db, ids, condition)
    share([], deleted)
    return deleted
  }

  const notifications = bus.subscribe(SUBJECT, (message) => {
    const notification = message as Notification
    if (notification.replicaId !== replicaId) memory.apply(notification.changed, notification.deleted)
  })
  const reconnects = bus.onChange((connected) => connected && void safely(load))
  await load()
  const checking = runPeriodically(checkMs, () => safely(check))

  return {
    get: memory.get,
    all: memory.all,
    of: memory.of,
    report: (links) => write({ links }),
    fail: (fault) => write({ fault }),
    async accept(acceptances) {
      if (acceptances.length > 0) await accept(acceptances)
    },
    async setLatencies(latencies) {
      if (latencies.length > 0) await measure(latencies)
    },
    async connect(sourceId, links) {
      if (links.length > 0) await setConnections(db, sourceId, links)
    },
    async set(id, settings) {
      const row = await setLinkSettings(db, id, settings)
      if (row) share([row])
      return row
    },
    delete: remove,
    deleteStale: (ids) => remove(ids, STALE),
    async [Symbol.asyncDispose]() {
      notifications[Symbol.dispose]()
      reconnects[Symbol.dispose]()
      await checking[Symbol.asyncDispose]()
      outage[Symbol.dispose]()
    },
  }
}

/** One of each id, the one with the newest iteration. */
function newest(links: readonly ReportedLink[]): readonly ReportedLink[] {
  const byIds = new Map<string, ReportedLink>()
  for (const link of links) {
    const other = byIds.get(link.id)
    const isNewer = !other || (other.sourceId === link.sourceId && other.iteration < link.iteration)
    if (isNewer) byIds.set(link.id, link)
  }
  return [...byIds.values()]
}

const byId = (rows: readonly LinkRow[]): Map<string, LinkRow> => new Map(rows.map((row) => [row.id, row]))

function* chunks<A, B>(some: readonly A[], others: readonly B[]): Iterable<[readonly A[], readonly B[]]> {
  for (let at = 0; at < Math.max(some.length, others.length); at += LINKS_PER_NOTIFICATION)
    yield [some.slice(at, at + LINKS_PER_NOTIFICATION), others.slice(at, at + LINKS_PER_NOTIFICATION)]
}
