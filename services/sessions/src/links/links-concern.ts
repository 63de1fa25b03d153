import {
  ctrlType,
  Fault,
  FaultSubject,
  LinkMetrics,
  LinkState,
  RouterLinks,
  VerifyRouter,
} from '@overlay/channel'
import { metrics } from '@overlay/process'
import { pagesOf, runPeriodically } from '@overlay/process/async'
import type { FabricEvents } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import { type Concern, onMessage } from '../channel/handlers.js'
import type { RouterChannels, RouterMessages } from '../channel/router-channel.js'
import {
  LEAVES_AT_A_TIME,
  LINK_GRACE_MS,
  LIST_BYTES,
  MEASURED_AT_A_TIME,
  METRICS_READS,
  STALE_LINKS_MS,
  UNITS_PER_ITEM,
  UNITS_PER_REPORT,
} from '../limits.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { RouterPresence } from '../routers/router-presence.js'
import type { LinkRow, LinkSettings } from '../store/link.js'
import { openPeers } from './announce-peers.js'
import { emitLinkEvent } from './emit-link-event.js'
import { openLinkReports } from './link-reports.js'
import { acceptedLinks, latenciesOf } from './measured-links.js'
import { openStaleLinks } from './stale-links.js'
import type { LiveTopology } from './topology.js'
import { refusalOf, verification } from './verify-router.js'

export interface LinksDeps {
  readonly topology: LiveTopology
  readonly presence: RouterPresence
  readonly routers: Pick<RouterDirectory, 'get' | 'onChange'>
  readonly channels: RouterChannels
  readonly messages: Pick<RouterMessages, 'send'>
  /** Moves the circuits over a link to other paths. `hasFailed`: the link carries nothing. */
  readonly leaveLink: (linkId: string, hasFailed?: boolean) => Promise<void>
  readonly events: FabricEvents
  readonly log: Logger
  readonly sweepMs?: number
  /** After this time the links of an offline router are deleted. */
  readonly graceMs?: number
  /** Within this time after it connects, a router reports all its links. */
  readonly confirmMs?: number
}

/** What administrators do with links. */
export interface LinkAdministration {
  /** Circuits leave a link that is down. Undefined: there is no such link. */
  setLink(id: string, settings: LinkSettings): Promise<LinkRow | undefined>
  /** Routers close the link, and usually dial again. If it is unknown, all routers receive the fault. */
  deleteLink(id: string): Promise<void>
}

export interface LinksConcern extends Concern, LinkAdministration, AsyncDisposable {
  /** A router has refused a route because it does not have this link: the link has failed. */
  linkUnknown(routerId: string, linkId: string): Promise<void>
}

/** Announces routers to each other and follows the links that they build. */
export function linksConcern(deps: LinksDeps): LinksConcern {
  const { topology, presence, routers, messages, leaveLink, events, log } = deps
  const { sweepMs = STALE_LINKS_MS, graceMs = LINK_GRACE_MS } = deps
  const { table } = topology

  async function leave(links: readonly Pick<LinkRow, 'id'>[], hasFailed = false): Promise<void> {
    for (const page of pagesOf(links, LEAVES_AT_A_TIME))
      await Promise.all(page.map(({ id }) => leaveLink(id, hasFailed)))
  }

  function sendFault(routerId: string, { id, iteration }: Pick<LinkRow, 'id' | 'iteration'>): void {
    const body = Fault.encode({ subject: FaultSubject.LINK, id, iteration }).finish()
    if (presence.isOnline(routerId)) messages.send(routerId, { type: ctrlType.fault, body })
  }

  async function sweep(): Promise<void> {
    const deleted = await deleteStale()
    for (const link of deleted) emitLinkEvent(events, 'fault', link)
    await leave(deleted)
  }

  const reports = openLinkReports({ ...deps, leave, sendFault })
  const peers = openPeers(deps)
  const deleteStale = openStaleLinks({ table, presence, routers, graceMs })
  const sweeping = runPeriodically(sweepMs, () =>
    sweep().catch((err: unknown) => log.warn({ err }, 'links of routers that are offline not deleted')),
  )

  return {
    handlers: [
      onMessage(ctrlType.routerLinks, RouterLinks, (links, _, router) => reports.report(router, links), {
        mostBytes: LIST_BYTES,
        items: ({ links }) => links.length,
      }),
      onMessage(ctrlType.linkState, LinkState, (state, _, router) => reports.state(router, state), {
        items: () => UNITS_PER_REPORT / UNITS_PER_ITEM,
      }),
      onMessage(ctrlType.fault, Fault, (fault, _, router) => {
        if (linkFaults.has(fault.subject)) return reports.fault(router, fault)
      }),
      onMessage(ctrlType.verifyRouter, VerifyRouter, async (claim, message, router) => {
        const refusal = refusalOf(routers.get(claim.routerId), claim.fingerprints)
        router.channel.reply(message, verification(refusal))
        if (refusal === undefined) await reports.accept(router, claim.routerId)
      }),
      onMessage(
        ctrlType.metrics,
        LinkMetrics,
        async (measured, _, { routerId }) => {
          if (measured.sourceId !== routerId) {
            metrics.routerMessagesForbidden.inc({ subject: 'link' })
            return
          }
          for (const page of pagesOf(table.of(routerId), MEASURED_AT_A_TIME)) {
            await table.accept(acceptedLinks(routerId, page, measured))
            await table.setLatencies(latenciesOf(routerId, page, measured))
          }
        },
        { mostBytes: LIST_BYTES, mostReads: METRICS_READS, items: ({ histograms }) => histograms.size / 4 },
      ),
    ],

    connected(router) {
      reports.connected(router)
      peers.connected(router)
    },
    disconnected: reports.disconnected,

    async setLink(id, settings) {
      const link = await table.set(id, settings)
      if (link?.isDown) await leave([link])
      return link
    },

    async linkUnknown(routerId, id) {
      const known = table.get(id)
      if (!known) return
      const [failed] = await table.fail({ id, routerId, iteration: known.iteration })
      if (!failed) return
      emitLinkEvent(events, 'fault', failed)
      for (const end of [failed.sourceId, failed.destinationId]) sendFault(end, failed)
      await leave([failed], true)
    },

    async deleteLink(id) {
      const [deleted] = await table.delete([id])
      if (!deleted) {
        for (const { routerId } of presence.online()) sendFault(routerId, { id, iteration: 0 })
        return
      }
      for (const routerId of [deleted.sourceId, deleted.destinationId]) sendFault(routerId, deleted)
      await leave([deleted])
    },

    async [Symbol.asyncDispose]() {
      peers[Symbol.dispose]()
      await sweeping[Symbol.asyncDispose]()
    },
  }
}

const linkFaults: ReadonlySet<FaultSubject> = new Set([FaultSubject.LINK, FaultSubject.LINK_DUPLICATE])
