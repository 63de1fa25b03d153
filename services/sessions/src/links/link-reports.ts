import {
  type Fault,
  FaultSubject,
  type LinkConnectionState,
  type LinkState,
  type RouterLinks,
} from '@overlay/channel'
import { metrics } from '@overlay/process'
import { pagesOf } from '@overlay/process/async'
import type { FabricEvents } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import type { RouterChannel } from '../channel/router-channel.js'
import { isIdentifier, isShowable } from '../domain/router-text.js'
import { CONFIRM_LINKS_MS, LINK_PAGE, MOST_LINK_CONNECTIONS, MOST_LINKS } from '../limits.js'
import type { ConnectedLink, LinkAcceptance, LinkRow, ReportedLink } from '../store/link.js'
import { emitLinkEvent } from './emit-link-event.js'
import { openReportQueue, type Persist, type ReportQueue } from './report-queue.js'
import type { LiveTopology } from './topology.js'

interface Connection {
  readonly enqueue: ReportQueue
  /** Links that it dialed before it connected, and has not reported since. */
  readonly unconfirmed: Set<string>
  timer: NodeJS.Timeout | undefined
}

export interface LinkReportDeps {
  readonly topology: Pick<LiveTopology, 'table' | 'isOnline'>
  readonly events: FabricEvents
  readonly log: Logger
  /** Moves the circuits over these links to other paths. */
  leave(links: readonly LinkRow[], hasFailed?: boolean): Promise<void>
  sendFault(routerId: string, link: LinkRow): void
  /** Within this time after it connects, a router reports all its links. */
  readonly confirmMs?: number | undefined
}

/** What routers report about their links. */
export function openLinkReports({
  topology,
  events,
  log,
  leave,
  sendFault,
  confirmMs = CONFIRM_LINKS_MS,
}: LinkReportDeps) {
  const { table } = topology
  const connections = new WeakMap<RouterChannel, Connection>()

  const dialedBy = (routerId: string): readonly LinkRow[] =>
    table.of(routerId).filter(({ sourceId }) => sourceId === routerId)

  function connectionOf(router: RouterChannel): Connection {
    const known = connections.get(router)
    if (known) return known
    const unconfirmed = new Set(dialedBy(router.routerId).map(({ id }) => id))
    const enqueue = openReportQueue(router, MOST_LINKS, log)
    const connection = { enqueue, unconfirmed, timer: undefined }
    connections.set(router, connection)
    return connection
  }

  /** A router reports all its links when it connects. Links that it does not report ended with its last process. */
  async function dropUnconfirmed({ channel }: RouterChannel, connection: Connection): Promise<void> {
    const { enqueue, unconfirmed } = connection
    await enqueue(1, async (persist) => {
      if (!channel.closed.aborted) await drop(persist, [...unconfirmed])
    })
  }

  async function drop(persist: Persist, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const deleted = await persist(() => table.delete(ids))
    for (const link of deleted) emitLinkEvent(events, 'fault', link)
    await leave(deleted)
  }

  function note(router: RouterChannel, connection: Connection, links: readonly ReportedLink[]): void {
    const { unconfirmed } = connection
    for (const { id } of links) unconfirmed.delete(id)
    if (unconfirmed.size === 0 || connection.timer) return
    connection.timer = setTimeout(() => {
      dropUnconfirmed(router, connection).catch((err: unknown) => {
        log.warn({ err }, 'links that ended with the process of a router not deleted')
      })
    }, confirmMs)
  }

  return {
    connected: (router: RouterChannel) => void connectionOf(router),

    disconnected(router: RouterChannel) {
      clearTimeout(connections.get(router)?.timer)
    },

    report(router: RouterChannel, message: RouterLinks): Promise<void> {
      const { routerId } = router
      const connection = connectionOf(router)
      const count = message.links.length
      const links = linksIn(message, routerId).slice(0, MOST_LINKS)
      return connection.enqueue(1 + links.length, async (persist) => {
        if (router.channel.closed.aborted) return
        const room = MOST_LINKS - dialedBy(routerId).length
        const taken = links.filter(({ id }, i) => i < room || table.get(id))
        note(router, connection, taken)
        let own = 0
        for (const page of pagesOf(taken, LINK_PAGE)) {
          const accepted = page.filter(({ id, destinationId }) =>
            isBetween(table.get(id), destinationId, routerId),
          )
          await persist(() =>
            table.accept(accepted.map((link) => acceptanceOf(routerId, link.destinationId))),
          )
          const stored = new Set((await persist(() => table.report(page))).map(({ id }) => id))
          const known = page.flatMap(({ id }) => {
            const link = table.get(id)
            return link?.sourceId === routerId ? [link] : []
          })
          own += accepted.length + known.length
          const isOwn = new Set(known.map(({ id }) => id))
          const connected = connectedLinks(message).filter(({ id }) => isOwn.has(id))
          await persist(() => table.connect(routerId, connected))
          for (const link of known) {
            if (!topology.isOnline(link.destinationId))
              emitLinkEvent(events, 'routerLinkDisconnectedDest', { id: link.id })
            emitLinkEvent(events, stored.has(link.id) ? 'routerLinkNew' : 'routerLinkKnown', link)
          }
        }
        metrics.routerMessagesForbidden.inc({ subject: 'link' }, count - own)
        if (message.fullRefresh && count <= MOST_LINKS) {
          const listed = new Set(message.links.map(({ id }) => id))
          await drop(
            persist,
            dialedBy(routerId).flatMap(({ id }) => (listed.has(id) ? [] : [id])),
          )
        }
      })
    },

    /** The connections of a link have changed. Only the router that has dialed it says so. */
    state(router: RouterChannel, { linkId, linkIteration, connections }: LinkState): Promise<void> {
      const connected = connections && connectedLink(linkId, linkIteration, connections)
      return connectionOf(router).enqueue(1, async (persist) => {
        if (!connected || !isBetween(table.get(linkId), router.routerId)) return
        await persist(() => table.connect(router.routerId, [connected]))
        emitLinkEvent(events, 'connectionsChanged', { id: linkId }, connected.connections)
      })
    },

    /** The router has a link that this one has dialed. */
    accept: (router: RouterChannel, dialerId: string): Promise<void> =>
      connectionOf(router).enqueue(1, (persist) =>
        persist(() => table.accept([acceptanceOf(router.routerId, dialerId)])),
      ),

    async fault(router: RouterChannel, { id, subject, iteration }: Fault): Promise<void> {
      if (!isIdentifier(id)) return // no link has such an id
      await connectionOf(router).enqueue(1, async (persist) => {
        const { routerId } = router
        const link = table.get(id)
        if (link && link.sourceId !== routerId && link.destinationId !== routerId) {
          metrics.routerMessagesForbidden.inc({ subject: 'link' })
          return
        }
        const isDuplicate = subject === FaultSubject.LINK_DUPLICATE
        const deleted = await persist(async (isRepeated) => {
          const [failed] = await table.fail({ id, routerId, iteration })
          return failed ?? (isRepeated && !table.get(id) ? link : undefined) // the first attempt has deleted it
        })
        if (!deleted) {
          if (!table.get(id)) emitLinkEvent(events, 'fault', { id })
          return
        }
        emitLinkEvent(events, isDuplicate ? 'duplicate' : 'fault', deleted)
        const otherId = deleted.sourceId === routerId ? deleted.destinationId : deleted.sourceId
        // differs: the router closes the link as soon as it is asked, so circuits leave a duplicate before
        if (!isDuplicate) sendFault(otherId, deleted)
        await persist(() => leave([deleted], !isDuplicate))
        if (isDuplicate) sendFault(otherId, deleted)
      })
    },
  }
}

const acceptanceOf = (listenerId: string, dialerId: string): LinkAcceptance => ({ listenerId, dialerId })

const isBetween = (
  link: LinkRow | undefined,
  sourceId: string,
  destinationId = link?.destinationId,
): boolean => link?.sourceId === sourceId && link.destinationId === destinationId

/** Undefined: it says nothing, or what cannot be shown. */
function connectedLink(
  id: string,
  iteration: number,
  { stateIteration, connections: all }: LinkConnectionState,
): ConnectedLink | undefined {
  const connections = all
    .slice(0, MOST_LINK_CONNECTIONS)
    .map(({ type, localAddress: source, remoteAddress: dest }) => ({ type, source, dest }))
  const isValid = connections.every((connection) => Object.values(connection).every(isShowable))
  return isValid ? { id, iteration, stateIteration, connections } : undefined
}

const connectedLinks = ({ links }: RouterLinks): readonly ConnectedLink[] =>
  links.flatMap(({ id, iteration, connections }) =>
    connections ? (connectedLink(id, iteration, connections) ?? []) : [],
  )

/** The valid ones, each once. */
function linksIn({ links }: RouterLinks, sourceId: string): readonly ReportedLink[] {
  const valid = links
    .filter(
      ({ id, protocol, dialAddress, destinationRouterId }) =>
        [id, protocol, dialAddress, destinationRouterId].every(isIdentifier) &&
        destinationRouterId !== sourceId,
    )
    .map(({ id, protocol, dialAddress, destinationRouterId, iteration }) => ({
      id,
      sourceId,
      destinationId: destinationRouterId,
      protocol,
      dialAddress,
      iteration,
    }))
  return [...new Map(valid.map((link) => [link.id, link])).values()]
}
