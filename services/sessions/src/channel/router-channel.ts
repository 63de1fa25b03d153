import type { Channel, Message, Outgoing } from '@overlay/channel'
import type { RouterFeatures } from '../domain/router-features.js'

/** A router that is connected to this replica. */
export interface RouterChannel {
  readonly routerId: string
  readonly channel: Channel
  /** SHA-1 of the client certificate, hex. */
  readonly fingerprint: string
  readonly connectedAt: Date
  readonly features: RouterFeatures
  /** The same process of the router was connected before, to this or another replica. */
  readonly isReconnection: boolean
  /** Protobuf `Listeners` of its hello, as received: where other routers reach it. */
  readonly linkListeners: Buffer
}

/** The routers that are connected to this replica. */
export interface RouterChannels {
  get(routerId: string): RouterChannel | undefined
  all(): Iterable<RouterChannel>
}

/** Messages to routers, to whichever replica they are connected. */
export interface RouterMessages {
  /** Sends a message to a router. It is lost if the router is offline. */
  send(routerId: string, message: Outgoing): void
  /** Sends a request and returns the reply. Throws RouterOffline, or what `Channel.request` throws. */
  request(routerId: string, message: Outgoing, timeoutMs: number): Promise<Message>
}

export class RouterOffline extends Error {
  override readonly name = 'RouterOffline'
}
