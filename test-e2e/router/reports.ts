import type { TLSSocket } from 'node:tls'
import {
  ConnectEvents,
  contentType,
  type IdentityConnectEvents,
  LinkState,
  type NetworkInterface,
  type Outgoing,
  type RouterLink,
  UpdateRouterInterfaces,
} from '@overlay/channel'
import type { Controller, Controllers } from './controllers.js'
import type { Line } from './lines.js'
import type { SdkChannel } from './sdk-channel.js'

const reportType = { updateRouterInterfaces: 1052, linkState: 1053, connectEvents: 20415 } as const

const REQUEST_MS = 30_000
const interfaces: NetworkInterface[] = [
  {
    name: 'lo',
    hardwareAddress: '',
    mtu: 65536n,
    index: 1n,
    flags: 1n + 4n + 32n,
    addresses: ['127.0.0.1/8'],
  },
]

/** What routers since 1.2 report of themselves. */
export interface Reports {
  connected(controller: Controller): void
  sdkConnected(sdk: SdkChannel, socket: TLSSocket): void
  sdkClosed(sdk: SdkChannel): void
  linkDialed(link: RouterLink): void
  /** Failures of requests. */
  readonly failures: readonly string[]
}

export function openReports(line: Line, controllers: () => Controllers): Reports {
  const sdks = new Map<SdkChannel, string>()
  const failures: string[] = []
  const isConnected = (identityId: string): boolean => [...sdks.values()].includes(identityId)
  const eventsOf = (events: IdentityConnectEvents[], fullState: boolean): Outgoing => ({
    type: reportType.connectEvents,
    body: ConnectEvents.encode({ events, fullState }).finish(),
  })
  const sendToAll = (message: Outgoing): void => {
    if (line !== '1.1') for (const { channel } of controllers().all()) channel.send(message)
  }

  /** wire: only if all controllers are new enough */
  function sendInterfaces(): void {
    const all = controllers().all()
    if (line !== '2.0' || !all.every(({ version }) => isSince(version.version, [1, 6, 3]))) return
    const body = UpdateRouterInterfaces.encode({ interfaces }).finish()
    for (const { channel } of all) {
      channel
        .request({ type: reportType.updateRouterInterfaces, body }, REQUEST_MS)
        .then(({ type }) => {
          if (type !== contentType.result) failures.push(`interfaces were answered by ${type}`)
        })
        .catch(() => undefined) // the channel has closed
    }
  }

  return {
    failures,
    connected({ channel }) {
      if (line === '1.1') return
      const events = [...new Set(sdks.values())].map((identityId) => ({
        identityId,
        isConnected: true,
        connectTimes: [],
      }))
      channel.send(eventsOf(events, true))
      sendInterfaces()
    },
    sdkConnected(sdk, { remoteAddress, remotePort, localAddress, localPort }) {
      const { identityId } = sdk.access
      sdks.set(sdk, identityId)
      const connectTime = BigInt(Date.now())
      const srcAddr = `${remoteAddress}:${remotePort}`
      const connectTimes = [{ connectTime, srcAddr, dstAddr: `${localAddress}:${localPort}` }]
      sendToAll(eventsOf([{ identityId, isConnected: true, connectTimes }], false))
    },
    sdkClosed(sdk) {
      const identityId = sdks.get(sdk) ?? ''
      sdks.delete(sdk)
      if (!isConnected(identityId))
        sendToAll(eventsOf([{ identityId, isConnected: false, connectTimes: [] }], false))
    },
    linkDialed({ id: linkId, iteration: linkIteration, connections }) {
      if (line === '2.0')
        sendToAll({
          type: reportType.linkState,
          body: LinkState.encode({ linkId, linkIteration, connections }).finish(),
        })
    },
  }
}

function isSince(version: string, least: readonly number[]): boolean {
  const parts = version.replace(/^v/, '').split('.').map(Number)
  for (const [at, part] of least.entries()) if (parts[at] !== part) return (parts[at] ?? 0) > part
  return true
}
