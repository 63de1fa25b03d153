import type { Message } from '@overlay/channel'
import type { RouterChannel } from './router-channel.js'

/** What a concern does with messages of one type. A failure of `handle` is logged and counted, and ends nothing. */
export interface Handler {
  readonly type: number
  /** Throws if the body or a header is malformed, which closes the channel. Returns what to run. */
  prepare(message: Message, router: RouterChannel): () => Promise<void> | void
}

/** A concern of the control channel. */
export interface Concern {
  readonly handlers: readonly Handler[]
  /** The router has passed the hello and its presence is saved. */
  connected?(router: RouterChannel): Promise<void> | void
  /** Runs once for each connected router. The router may be connected to another replica, or here again, already. */
  disconnected?(router: RouterChannel): Promise<void> | void
}

interface Decoder<T> {
  decode(bytes: Uint8Array): T
}

/** Handles messages whose body is a protobuf message. */
export const onMessage = <T>(
  type: number,
  codec: Decoder<T>,
  handle: (body: T, message: Message, router: RouterChannel) => Promise<void> | void,
): Handler => ({
  type,
  prepare(message, router) {
    const body = codec.decode(message.body)
    return () => handle(body, message, router)
  },
})
