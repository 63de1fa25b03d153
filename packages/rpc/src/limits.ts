// The limits of time and size of this package. Names end with their unit; without one, they are numbers of things.

// Calls

/** Of a call that has no deadline, and of any call at its server: the limit of a whole request at a gateway. */
export const CALL_LIMIT_MS = 10_000
/** Of a message in either direction. A page of 500 large rows fits. */
export const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024
/** Below `MESSAGE_LIMIT_BYTES` by what an `Answer` adds: the tag and the length. */
export const RESPONSE_LIMIT_BYTES = MESSAGE_LIMIT_BYTES - 64
/** Pending calls of one client to one replica; more would time out while they wait. Further ones get 429. */
export const MAX_PENDING_CALLS = 1000
/** Running calls of one connection at its server. Not below `MAX_PENDING_CALLS`: a client could not use what it may. */
export const MAX_RUNNING_CALLS = 1000
/** After the first attempt, of a call that has reached no replica, or an unresponsive one. */
export const MAX_RETRIES = 2

// Connections

/** Of a connection of frames, its handshake included. Below `CALL_LIMIT_MS`, so that its calls can try another replica. */
export const DIAL_MS = 3000
/** Of a handshake at the server. Above `DIAL_MS`: a client that still waits is not refused. */
export const HANDSHAKE_MS = 10_000
/** A connection with more unsent bytes is congested: its server reads no further calls. */
export const CONGESTED_BYTES = 1024 * 1024
/** With more unsent bytes, calls get 429. Several times `MESSAGE_LIMIT_BYTES`: one large request must not refuse others. */
export const STUCK_BYTES = 4 * MESSAGE_LIMIT_BYTES
/** The age at which a connection is replaced. The new one may reach a replica that has started later. */
export const CONNECTION_AGE_MS = 3_600_000
/** How long a server that stops waits for running calls. Not below `CALL_LIMIT_MS`. */
export const STOP_MS = 10_000
/** How long a replica that takes no connection counts as disconnected, even if it has another connection. */
export const REFUSED_MS = 1000

// Unresponsive replicas

/** Between beats. The following numbers of beats are multiples of it. */
export const BEAT_MS = 250
/** A replica is unresponsive if it leaves a ping unanswered for this many beats: 2 s, far below `CALL_LIMIT_MS`. */
export const MAX_UNANSWERED_BEATS = 8
/** Its connections are given up, since the host may have vanished: 13 s, as gRPC gives up those of streams. */
export const LOST_BEATS = 52
/** A ping is due after this silence of a replica that has only streams: they have messages more often, every 1 s. */
export const QUIET_BEATS_OF_STREAMS = 8

// Connections of gRPC, for streams

export const GRPC_BACKOFF_MS = { initial: 100, most: 2000 } as const
/** Together the 13 s of `LOST_BEATS`. */
export const GRPC_KEEPALIVE_MS = { after: 10_000, answer: 3000 } as const
/** What a server may send before its client reads. A page of changes fits. */
export const GRPC_WINDOW_BYTES = 1024 * 1024

// Names of hosts

/** The age at which names are looked up again. */
export const LOOK_UP_AGE_MS = 5000
/** Between look-ups, however many callers ask for one. */
export const LOOK_UP_PAUSE_MS = 250
/** The same while no address is known: calls wait for it. */
export const EMPTY_LOOK_UP_PAUSE_MS = 1000
/** Of one look-up. The resolver of the system may take longer than a call. */
export const LOOK_UP_LIMIT_MS = 5000

// Certificates

/** Between reads of the directory, in case its file system reports no changes. */
export const CERTIFICATE_POLL_MS = 60_000
/** From a change of the directory to its read: files may be written one after the other. */
export const CERTIFICATE_SETTLE_MS = 200

// The port of health checks, which has no TLS

/** The probes of an orchestrator are few, and strangers may reach the port. */
export const MAX_HEALTH_CONNECTIONS = 64
export const MAX_HEALTH_STREAMS = 16
export const HEALTH_IDLE_MS = 10_000
export const HEALTH_MESSAGE_BYTES = 4096

// Faults

/** Of a public text: what a client has sent comes back shortened. */
export const MAX_PUBLIC_CHARACTERS = 4096
