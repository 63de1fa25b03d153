import { ConnectEvents, edgeType } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { runPeriodically, yielder } from '@overlay/process/async'
import type { FabricEvents } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import { onMessage } from '../channel/handlers.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { isShowable, reportedTime } from '../domain/router-text.js'
import {
  CONNECT_READS,
  CONNECTED_REPORT_MS,
  LIST_BYTES,
  MAX_IDENTITY_ID_LENGTH,
  MOST_CONNECT_DETAILS,
  MOST_CONNECT_EVENTS,
  MOST_CONNECTED,
  UNITS_PER_ITEM,
} from '../limits.js'
import type { Activity } from './activity.js'

export interface ConnectedDeps {
  readonly events: FabricEvents
  /** Controller id of this replica. */
  readonly controllerId: string
  readonly activity: Pick<Activity, 'noteIdentity'>
  /** False: the identity has no API session, or policies do not let it use the router. */
  readonly mayConnect: (routerId: string, identityId: string) => boolean
  readonly log: Logger
  /** Milliseconds between two reports of identities that are connected. */
  readonly reportMs?: number
}

interface Connected {
  readonly router: RouterChannel
  readonly identities: Set<string>
}

/**
 * The identities that are connected to the routers of this replica, as these report. Routers report changes only, so what is
 * known is reported to identity periodically, as the heartbeats of API sessions are.
 */
export function openConnectedIdentities({
  activity,
  mayConnect,
  events,
  controllerId,
  log,
  reportMs = CONNECTED_REPORT_MS,
}: ConnectedDeps) {
  const byRouter = new Map<string, Connected>()

  async function noteAll(): Promise<void> {
    const yieldNow = yielder()
    for (const [routerId, { identities }] of byRouter)
      for (const id of identities) {
        if (mayConnect(routerId, id)) activity.noteIdentity(id)
        await yieldNow()
      }
  }
  const reporting = runPeriodically(reportMs, () =>
    noteAll().catch((err: unknown) => log.warn({ err }, 'connected identities not reported')),
  )

  function emitEvents(
    router: RouterChannel,
    { events: all }: ConnectEvents,
    spend: (units: number) => void = () => undefined,
  ): void {
    for (const { identityId, connectTimes } of all.slice(0, MOST_CONNECT_EVENTS)) {
      spend(Math.min(connectTimes.length, MOST_CONNECT_DETAILS) * UNITS_PER_ITEM)
      for (const { connectTime, srcAddr, dstAddr } of connectTimes.slice(0, MOST_CONNECT_DETAILS)) {
        const at = reportedTime(connectTime)
        if (![identityId, srcAddr, dstAddr].every(isShowable) || at === undefined) continue
        events.emit({
          namespace: 'connect',
          event_src_id: controllerId,
          timestamp: at,
          src_type: 'identity',
          dst_type: 'router',
          src_id: identityId,
          src_addr: srcAddr,
          dst_id: router.routerId,
          dst_addr: dstAddr,
        })
      }
    }
  }

  function report(router: RouterChannel, { events: reported, fullState }: ConnectEvents): void {
    const { routerId } = router
    const known = byRouter.get(routerId)
    const identities = !fullState && known?.router === router ? known.identities : new Set<string>()
    byRouter.set(routerId, { router, identities })
    let forbidden = 0
    for (const { identityId, isConnected } of reported) {
      if (!isConnected) {
        identities.delete(identityId)
        continue
      }
      if (identities.size < MOST_CONNECTED && identityId.length <= MAX_IDENTITY_ID_LENGTH)
        identities.add(identityId)
      if (mayConnect(routerId, identityId)) activity.noteIdentity(identityId)
      else forbidden++ // or its API session has not arrived here yet
    }
    metrics.routerMessagesForbidden.inc({ subject: 'identity' }, forbidden)
  }

  return {
    of: (routerId: string): ReadonlySet<string> | undefined => byRouter.get(routerId)?.identities,

    // differs: a full report, which repeats what is known, makes no events
    handler: onMessage(
      edgeType.connectEvents,
      ConnectEvents,
      (body, _message, router, spend) => {
        if (router.channel.closed.aborted) return
        report(router, body)
        if (!body.fullState) emitEvents(router, body, spend)
      },
      { mostBytes: LIST_BYTES, mostReads: CONNECT_READS, items: ({ events }) => events.length / 20 },
    ),

    disconnected(router: RouterChannel): void {
      if (byRouter.get(router.routerId)?.router === router) byRouter.delete(router.routerId)
    },

    [Symbol.asyncDispose]: () => reporting[Symbol.asyncDispose](),
  }
}

export type ConnectedIdentities = ReturnType<typeof openConnectedIdentities>
