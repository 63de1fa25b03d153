/** Headers by key. Their values are encoded with the functions of `headers.ts`. */
export type Headers = ReadonlyMap<number, Buffer>

/** A message to send. The channel adds the sequence and heartbeats. */
export interface Outgoing {
  readonly type: number
  readonly headers?: Headers
  readonly body?: Uint8Array
}

/** A message whose body has any size, in parts. */
export interface LargeOutgoing extends Omit<Outgoing, 'body'> {
  readonly parts: readonly Uint8Array[]
}

/** A received message. */
export interface Message {
  readonly type: number
  /** Counts from 1 on each side of a channel; -1 in the hello and its answer. */
  readonly sequence: number
  readonly headers: Headers
  readonly body: Buffer
  /** The body is empty here: it had as many bytes, which is too many. */
  readonly skippedBytes?: number
}

export const bodyBytesOf = ({ body, skippedBytes = 0 }: Message): number => body.length + skippedBytes

export const HELLO_SEQUENCE = -1

/** Header keys that every channel uses. */
export const headerKey = {
  connectionId: 0,
  replyFor: 1,
  resultSuccess: 2,
  version: 4,
  heartbeat: 5,
  heartbeatResponse: 6,
  type: 7,
  id: 8,
  listeners: 10,
  routerMetadata: 11,
  capabilities: 12,
} as const

/** Header keys of the hello of routers of 2.x. Keys 10 and 11 have other meanings in a hello that is not grouped. */
export const groupedHeader = {
  isGrouped: 9,
  /** The same in all hellos and answers of a group. */
  secret: 10,
  /** The first connection of its group. */
  isFirst: 11,
  /** If routerCapability.multiChannel is set. */
  listeners: 1000,
  /** Bits, big-endian. */
  capabilities: 1002,
} as const

/** Headers of a request with keys in this range return in its reply. */
export const isReflected = (key: number): boolean => key >= 128 && key <= 255

/** Content types that every channel uses. */
export const contentType = {
  hello: 0,
  ping: 1,
  result: 2,
  latency: 3,
  latencyResponse: 4,
  heartbeat: 5,
  /** Sent by routers before they reconnect. No answer. */
  reconnectPing: -33,
} as const

/** Types that every channel answers, or takes note of, itself. */
export const ownTypes: ReadonlySet<number> = new Set([
  contentType.ping,
  contentType.latency,
  contentType.heartbeat,
  contentType.reconnectPing,
])
