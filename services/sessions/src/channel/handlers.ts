import { type Decoder, decodeBounded, type Message } from '@overlay/channel'
import { MOST_BYTES, MOST_READS, READS_PER_UNIT, UNITS_PER_ITEM } from '../limits.js'
import type { RouterChannel } from './router-channel.js'

/** What a concern does with messages of one type. A failure of `handle` is logged and counted, and ends nothing. */
export interface Handler {
  readonly type: number
  /** A message with a larger body is dropped. Default: MOST_BYTES. */
  readonly mostBytes?: number
  /**
   * Throws if the body or a header is malformed, which closes the channel; or TooManyFields, which drops the message.
   * Returns what to run. `spend`: notes what the message costs, in units of the work budget.
   */
  prepare(
    message: Message,
    router: RouterChannel,
    spend?: (units: number) => void,
  ): () => Promise<void> | void
}

/** A concern of the control channel. */
export interface Concern {
  readonly handlers: readonly Handler[]
  /** The router has passed the hello and its presence is saved. */
  connected?(router: RouterChannel): Promise<void> | void
  /** Runs once for each connected router. The router may be connected to another replica, or here again, already. */
  disconnected?(router: RouterChannel): Promise<void> | void
}

/** Decodes what a router sends. Throws TooManyFields, or what the decoder throws. */
export const decodeLimited = <T>(
  codec: Decoder<T>,
  body: Buffer,
  mostReads = MOST_READS,
  spend: (units: number) => void = () => undefined,
) => decodeBounded(codec, body, mostReads, (reads) => spend(reads / READS_PER_UNIT))

export interface MessageOptions<T> extends Pick<Handler, 'mostBytes'> {
  /** How many entities the message is about, if not about one. */
  readonly items?: (body: T) => number
  /** Default: MOST_READS. */
  readonly mostReads?: number
}

/** Handles messages whose body is a protobuf message. */
export const onMessage = <T>(
  type: number,
  codec: Decoder<T>,
  handle: (
    body: T,
    message: Message,
    router: RouterChannel,
    spend?: (units: number) => void,
  ) => Promise<void> | void,
  { mostBytes = MOST_BYTES, mostReads, items = () => 0 }: MessageOptions<T> = {},
): Handler => ({
  type,
  mostBytes,
  prepare(message, router, spend) {
    const body = decodeLimited(codec, message.body, mostReads, spend)
    spend?.(items(body) * UNITS_PER_ITEM)
    return () => handle(body, message, router, spend)
  },
})
