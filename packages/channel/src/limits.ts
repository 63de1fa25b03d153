/** Of a frame before the peer is known. wire: as controllers of 2.x: the listeners of a router are in its headers. */
export const HELLO_LIMITS = { headersBytes: 16_384, bodyBytes: 4192 }

/** Of a frame after the hello, unless the owner of the channel sets others. */
export const MESSAGE_LIMITS = { headersBytes: 1024 * 1024, bodyBytes: 4 * 1024 * 1024 }

/** Headers of a frame. */
export const MAX_HEADERS = 256

/** Entries of a header that is a list or a map. */
export const MAX_ENTRIES = 128

/** Of such an entry. */
export const MAX_ENTRY_BYTES = 8192

/** A peer that has not taken more bytes loses its channel. Several times the largest message. */
export const MAX_QUEUED_BYTES = 32 * 1024 * 1024

/** Senders of many messages wait until fewer bytes are queued. Far below `MAX_QUEUED_BYTES`. */
export const FEW_QUEUED_BYTES = 256 * 1024

/** Bytes of one write of a message that is sent in parts. */
export const PIECE_BYTES = 64 * 1024

/** Handlers that run at once. */
export const MAX_PENDING = 64

/** Messages that wait for a handler before reading pauses. */
export const MAX_WAITING = 1024

/** The same in bytes. At least the largest message, which could never be handled otherwise. */
export const MAX_WAITING_BYTES = 8 * 1024 * 1024

/** Memory of a message, and of each header, without its value, about. Counts in `MAX_WAITING_BYTES`. */
export const MESSAGE_BYTES = 256

/** Messages that a channel handles before other channels have their turn. */
export const MESSAGES_PER_TURN = 64

/** Between heartbeats, as routers send them. */
export const HEARTBEAT_MS = 10_000

/** A peer that sends or takes nothing for more intervals loses its channel. */
export const MAX_IDLE_INTERVALS = 3
