// Times and sizes of all processes. Settings are in settings.ts.

// Health and metrics

/** Of a check of the whole process: shorter than a probe waits. */
export const HEALTH_CHECK_MS = 2000

/** Of a check of one component of a shared process: less than HEALTH_CHECK_MS, so that one does not hide the others. */
export const COMPONENT_CHECK_MS = 1500

/** Of the server of health and metrics, in milliseconds. */
export const OPS_TIMEOUTS = {
  headersTimeout: 10_000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 5000,
}

/** Connections to the server of health and metrics; the oldest one makes room for a further one. */
export const OPS_CONNECTIONS = 200

/** Open files that are reserved for logs, databases and other processes. */
export const RESERVED_FILES = 200

// Stop, event loop

/** A stop takes no longer. Orchestrators must wait longer before they kill the process. */
export const STOP_MS = 20_000

/** Between two measurements of the event loop: each wakes the process. */
export const LAG_MS = 250

/** Time for other work after each slice of long work. */
export const SLICE_MS = 5

/** From the loss of a connection until it is reported. Longer than the restart of a peer's replica. */
export const OUTAGE_MS = 3000

/** Between two reports of one outage whose cause changes all the time; more than OUTAGE_MS. */
export const OUTAGE_REPORT_MS = 60_000

// Logs

/** Characters that are written at once; fewer wait for the next flush, since a write costs about as much as a request. */
export const LOG_WRITE_CHARACTERS = 64 * 1024

/** Between two flushes. */
export const LOG_FLUSH_MS = 100

/** From a write that a slow reader has not taken to the next attempt. */
export const LOG_RETRY_MS = 10

/** Unwritten text of a slow reader; further lines are dropped. */
export const LOG_UNWRITTEN_CHARACTERS = 16 * 1024 * 1024

/** Of the last write to a reader that takes nothing; less than STOP_MS. */
export const LOG_LAST_FLUSH_MS = 1000

/** Lines of one message that clients can cause: a flood must not fill the disk or displace other lines. */
export const LINE_LIMITS = { perSource: 60, total: 600, withinMs: 60_000 }

/** Lines about calls of peers: by method for what fails, by caller and method for what is refused. */
export const CALL_LINE_LIMITS = { perSource: 10, total: 60, withinMs: 60_000 }

/** Slow requests and refusals that the status page shows. */
export const RECENT_ITEMS = 50

/** Characters of a member of a refusal that is kept. */
export const RECENT_CHARACTERS = 128

/** From which a request is slow. */
export const SLOW_SECONDS = 0.5

// Connections of clients and routers

/** Handshakes that begin in one turn of the event loop. */
export const HANDSHAKES_PER_TURN = 8

/** Connections that are accepted before the next handshakes begin. */
export const ACCEPTED_BEFORE_HANDSHAKES = 64

/** What a client sends for its handshake if its chain has up to three certificates of usual size. */
export const USUAL_HANDSHAKE_BYTES = 4096

/** A failed handshake that reads more contains a chain that no policy accepts; more than USUAL_HANDSHAKE_BYTES. */
export const FAILED_HANDSHAKE_BYTES = 8192

/** How long a source rests for each excessive handshake: several times what one may cost. */
export const SOURCE_REST_MS = 500

/** How long after its last rest a source stays limited; more than SOURCE_REST_MS. */
export const SOURCE_LIMITED_MS = 10_000

/** Handshakes that a limited source has under way at a time, and for how long each. */
export const HANDSHAKES_IF_LIMITED = 4
export const HANDSHAKE_MS_IF_LIMITED = 2000

/** Certificates of a chain, and bits of an RSA key. No policy accepts more. */
export const MAX_CERTIFICATES = 8
export const MAX_KEY_BITS = 8192

/** For a client without TLS to read why it is refused. */
export const PLAIN_HTTP_MS = 2000

// Keys and certificates

/** Of a request to pki for the key of a server, the pause before the next one, and the period of polls. */
export const SERVER_KEY_MS = 10_000
export const SERVER_KEY_PAUSE_MS = 250
export const SERVER_KEY_POLL_MS = 60_000

/** Between two reads of the keys of tokens that unknown key ids cause. */
export const TOKEN_KEYS_REFETCH_MS = 1000
