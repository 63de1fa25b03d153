import { type ConnectionLimits, type FetchKey, renewServerKey, serverKey } from '@overlay/process/tls'
import type { Position } from '@overlay/rpc'
import { type Bus, type ChangeLog, fabricEvents, type Source, watchKinds } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import { extendEnrollment } from './certificates/extend-enrollment.js'
import type { RouterCertificates } from './certificates/router-certificates.js'
import { watchCertificates } from './certificates/watch-certificates.js'
import { openAcceptor } from './channel/accept-router.js'
import { openChannelRegistry } from './channel/channel-registry.js'
import { openDispatch } from './channel/dispatch.js'
import type { Concern } from './channel/handlers.js'
import { type ControlKey, type ControlListener, listenForRouters } from './channel/listen.js'
import { routerStatus } from './channel/router-status.js'
import { type ControlCore, type ControlOwners, openTraffic, type Traffic } from './concerns.js'
import { type LinkAdministration, linksConcern } from './links/links-concern.js'
import { openTopology } from './links/topology.js'
import { openRouterMessages } from './relay/router-messages.js'
import { routerReports } from './reports/router-reports.js'
import { openPresence } from './routers/presence.js'
import type { RouterDirectory } from './routers/router-directory.js'
import { routerEvents } from './routers/router-events.js'

/** Where and as what this replica takes connections of routers. */
export interface ControlListen {
  /** `host:port` */
  readonly address: string
  /** Stable, and distinct from the ids of the other replicas. */
  readonly controllerId: string
  readonly limits: ConnectionLimits
  readonly fetchKey: FetchKey<ControlKey>
  /** Of pki, whose changes of keys are followed. Undefined: they are polled. */
  readonly keySource?: Source | undefined
}

export interface ControlOptions {
  readonly changeLog: ChangeLog
  readonly bus: Bus
  readonly directory: RouterDirectory
  readonly log: Logger
  /** The services that the concerns call and follow. Undefined: routers come online, and nothing else. */
  readonly owners?: ControlOwners | undefined
  /** Undefined: routers cannot extend their certificates. */
  readonly certificates?: RouterCertificates | undefined
  /** Undefined: this replica has no routers. */
  readonly listen?: ControlListen | undefined
  readonly leaseMs?: number
  readonly heartbeatMs?: number
  readonly helloMs?: number
}

export interface Control extends ControlCore, AsyncDisposable {
  readonly links: LinkAdministration
  /** Undefined without owners. */
  readonly traffic: Pick<Traffic, 'circuits' | 'terminators' | 'model'> | undefined
  /** The port, once this replica takes connections. */
  readonly listening: Promise<number | undefined>
  isListening(): boolean
  /** Resolves when the database shows which routers are connected now. */
  saved(): Promise<void>
}

/** The control channel of one replica. It begins to listen when pki has given it a key. */
export async function openControl(options: ControlOptions): Promise<Control> {
  await using opening = new AsyncDisposableStack()
  const { changeLog, bus, directory, log, listen, owners, certificates } = options
  const { leaseMs, heartbeatMs, helloMs } = options
  const replicaId = listen?.controllerId
  const channels = openChannelRegistry()
  const openingPresence = openPresence({
    db: changeLog.db,
    bus,
    log,
    replicaId,
    ...(leaseMs !== undefined && { leaseMs }),
  })
  const presence = opening.use(await openingPresence)
  const status = routerStatus(presence, directory, channels)
  const controllerId = replicaId ?? ''
  const { db } = changeLog
  const messages = opening.use(openRouterMessages({ db, bus, log, channels, presence, replicaId }))
  const events = fabricEvents(bus)
  const shared = { channels, messages, presence, bus, events, log }
  const topology = opening.use(
    await openTopology({ ...shared, db, replicaId: controllerId, routers: directory }),
  )
  const linkUnknown: ControlCore['linkUnknown'] = (...link) => links.linkUnknown(...link)
  const core: ControlCore = {
    ...{ ...shared, controllerId, directory, sync: status, topology, changeLog },
    linkUnknown,
  }
  opening.use(routerEvents(core))
  const traffic = opening.use(owners && (await openTraffic(core, owners)))
  const leaveLink = traffic?.circuits.leaveLink ?? (async () => undefined)
  const links = opening.use(linksConcern({ ...shared, topology, routers: directory, leaveLink }))
  const extension = certificates ? [extendEnrollment({ certificates, directory, log })] : []
  const concerns: readonly Concern[] = [
    status,
    links,
    routerReports({ ...shared, db, controllerId }),
    ...extension,
    ...(traffic?.concerns ?? []),
  ]
  const acceptor = openAcceptor({
    controllerId,
    directory,
    presence,
    channels,
    status,
    concerns,
    dispatch: openDispatch(concerns, log),
    log,
    ...(heartbeatMs !== undefined && { heartbeatMs }),
    ...(helloMs !== undefined && { helloMs }),
  })
  presence.onLost(() => channels.closeAll('another process has the controller id'))

  const listeners = opening.use(new AsyncDisposableStack())
  opening.use(acceptor)
  opening.use(listen && watchCertificates(db, log))

  const stop = new AbortController()
  let listener: ControlListener | undefined
  async function start({ address, limits, fetchKey, keySource }: ControlListen): Promise<number> {
    const key = await serverKey(fetchKey, log, stop.signal)
    const opened = listeners.use(await listenForRouters(address, key, limits, acceptor.accept))
    listener = opened
    const follower = listeners.use(renewServerKey(fetchKey, log, key, opened.renew))
    if (keySource) {
      const reload = (position: Position) => follower.reload({ [keySource.schema]: position })
      listeners.use(await watchKinds(keySource, ['keys'], reload, { log, loaded: 'background' }))
    }
    log.info({ address, controllerId }, 'listening for routers')
    return opened.port
  }
  const listening = listen ? start(listen) : Promise.resolve(undefined)
  listening.catch((err: unknown) => {
    if (!stop.signal.aborted) log.error({ err }, 'cannot listen for routers')
  })

  opening.defer(async () => {
    stop.abort()
    await listening.catch(() => undefined) // logged
    await listener?.stopAccepting()
  })
  const opened = opening.move()
  return {
    ...core,
    links,
    traffic,
    listening,
    isListening: () => listener !== undefined,
    saved: presence.saved,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
