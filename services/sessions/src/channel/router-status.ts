import {
  ClientHello,
  ctrlType,
  edgeType,
  encodeBool,
  LinkListeners,
  modelHeader,
  type Outgoing,
  ServerHello,
} from '@overlay/channel'
import { supportedProtocolsOf } from '../domain/hello.js'
import { controllerVersionFor, type RouterFeatures } from '../domain/router-features.js'
import { showable } from '../domain/router-text.js'
import { LISTENER_BYTES, MOST_LISTENERS, UNITS_PER_ITEM, UNITS_PER_REPORT } from '../limits.js'
import type { OwnPresence } from '../routers/presence.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { PresenceRow } from '../store/presence.js'
import { isListener } from './check-hello.js'
import { type Concern, onMessage } from './handlers.js'
import type { RouterChannel } from './router-channel.js'

/** What a router receives before it serves clients. Routers without the data model have only API sessions. */
export type SyncPart = 'api-sessions' | 'model'

/** For the concerns that send it: the shown state of a router. */
export interface SyncReport {
  /** What the router lacks is on its way. */
  started(router: RouterChannel, part: SyncPart): void
  /** The router has been sent everything. */
  done(router: RouterChannel, part: SyncPart): void
}

export interface RouterStatus extends SyncReport, Concern {
  /** Saves that the router is connected. Fails while the database is unavailable. */
  open(router: Pick<RouterChannel, 'routerId' | 'connectedAt'>, first: FirstStatus): Promise<void>
  /** The router has no connection here any more. */
  forget(routerId: string): void
}

type FirstStatus = Pick<PresenceRow, 'versionInfo' | 'linkListeners' | 'features'>

/** wire: the values of `syncStatus` that the original shows. */
const words = {
  queued: 'SYNC_QUEUED',
  helloSent: 'SYNC_HELLO',
  helloReceived: 'SYNC_HELLO_WAIT',
  syncing: 'SYNC_IN_PROGRESS',
  synced: 'SYNC_DONE',
} as const

const serverHelloFor = (features: RouterFeatures): Outgoing => ({
  type: edgeType.serverHello,
  ...(features.hasDataModel && { headers: new Map([[modelHeader.isSupported, encodeBool(true)]]) }),
  body: ServerHello.encode(ServerHello.fromPartial({ version: controllerVersionFor(features) })).finish(),
})

/** What is shown of connected routers: exchanges hellos with edge routers and keeps their rows. */
export function routerStatus(
  presence: Pick<OwnPresence, 'put' | 'remove'>,
  directory: Pick<RouterDirectory, 'get'>,
  channels: { get(routerId: string): RouterChannel | undefined },
): RouterStatus {
  interface Status {
    readonly row: PresenceRow
    readonly hello: 'queued' | 'helloSent' | 'helloReceived'
    readonly sync: Readonly<Partial<Record<SyncPart, 'syncing' | 'synced'>>>
  }
  const statuses = new Map<string, Status>()

  function wordOf({ row, hello, sync }: Status): string {
    const parts: readonly SyncPart[] = row.features.verifiesTokens
      ? ['api-sessions', 'model']
      : ['api-sessions']
    if (hello !== 'helloReceived' || parts.every((part) => !sync[part])) return words[hello]
    return words[parts.every((part) => sync[part] === 'synced') ? 'synced' : 'syncing']
  }

  function write(routerId: string, status: Status): Promise<void> {
    const row = { ...status.row, syncStatus: wordOf(status) }
    statuses.set(routerId, { ...status, row })
    return presence.put(row)
  }
  function change(router: RouterChannel, next: Partial<Status>): void {
    const status = statuses.get(router.routerId)
    if (!status || channels.get(router.routerId) !== router) return
    write(router.routerId, { ...status, ...next }).catch(() => undefined) // the next poll writes it
  }

  const setSync = (router: RouterChannel, part: SyncPart, state: 'syncing' | 'synced'): void =>
    change(router, { sync: { ...statuses.get(router.routerId)?.sync, [part]: state } })

  return {
    open: ({ routerId, connectedAt }, first) =>
      write(routerId, {
        row: {
          routerId,
          ...first,
          hostname: '',
          supportedProtocols: {},
          syncStatus: words.queued,
          connectedAt: connectedAt.toISOString(),
        },
        hello: 'queued',
        sync: {},
      }),
    forget(routerId) {
      statuses.delete(routerId)
      presence.remove(routerId)
    },
    started: (router, part) => setSync(router, part, 'syncing'),
    done: (router, part) => setSync(router, part, 'synced'),

    connected(router) {
      if (!directory.get(router.routerId)?.isEdge) return
      router.channel.send(serverHelloFor(router.features))
      change(router, { hello: 'helloSent' })
    },
    handlers: [
      onMessage(edgeType.clientHello, ClientHello, (hello, _message, router) => {
        const row = statuses.get(router.routerId)?.row
        if (!row) return
        const hostname = showable(hello.hostname)
        change(router, {
          row: { ...row, hostname, supportedProtocols: supportedProtocolsOf(hello) },
          hello: 'helloReceived',
        })
      }),
      onMessage(
        ctrlType.linkListeners,
        LinkListeners,
        ({ listeners }, { body }, router) => {
          const row = statuses.get(router.routerId)?.row
          const linkListeners = body.toString('base64')
          const isFew = body.length <= LISTENER_BYTES && listeners.length <= MOST_LISTENERS
          if (!isFew || !listeners.every(isListener)) return
          if (!row || row.linkListeners === linkListeners) return
          change(router, { row: { ...row, linkListeners } })
        },
        { items: () => UNITS_PER_REPORT / UNITS_PER_ITEM },
      ),
    ],
  }
}
