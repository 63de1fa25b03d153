// The limits of time and size of the gateway. Names end with their unit; without one, they are numbers of things.

// Requests

/** From connection to the last header. */
export const HEADERS_MS = 10_000
/** From the start of a request to its response, calls to services included. Equal to `CALL_LIMIT_MS` of rpc. */
export const REQUEST_MS = 10_000
/** To receive a body. Below `REQUEST_MS`, so that its handler has time. */
export const BODY_MS = 5_000
/** Without a byte in either direction on a connection. */
export const IDLE_MS = 60_000
/** At a stop, for clients to change to another gateway. */
export const CHANGE_MS = 5_000
/** In its place if there is no other gateway: requests that are in flight still arrive. */
export const HURRIED_CHANGE_MS = 300
/** After `CHANGE_MS`, for running requests. Not below `REQUEST_MS`. */
export const DRAIN_MS = 10_000
/** For a client to read the last response of its connection. */
export const LINGER_MS = 2000
/** For a client to send the rest of a request that has been answered. */
export const REST_MS = 500
/** How long a login that is refused for load is held. Below `REQUEST_MS`. */
export const HELD_LOGIN_MS = 1000
/** `Retry-After` of a fault that has none of its own. */
export const RETRY_SECONDS = 1

/** Of all headers. A token of `MAX_TOKEN_CHARACTERS` of x509, and other headers besides it. */
export const HEADER_BYTES = 80 << 10
/** Node drops further headers; a request that has as many is refused. */
export const MAX_HEADERS = 256
/** Of the headers of one request. */
export const MAX_BEARERS = 4
/** Of those, besides the token of a session. Each may cost a signature. */
export const MAX_TRIED_BEARERS = 2
/** Of a host with user and port: decoding takes quadratic time. */
export const MAX_AUTHORITY_CHARACTERS = 300
/** Entries of the headers `Accept`, `Access-Control-Request-Headers` and `If-None-Match`. */
export const MAX_HEADER_ENTRIES = 64
/** Of one entry of `Accept`. */
export const MAX_RANGE_PARAMETERS = 16

/** Of a body. Lists, texts and depth have limits of their own. */
export const BODY_BYTES = 1 << 20
/** Of a body without a session: a login with a token or the data of the SDK, or two certificate requests. */
export const OPEN_BODY_BYTES = 80 << 10
/** Of a refused body that is read and discarded within `BODY_MS`: many clients read no response before they have sent all. */
export const DISCARDED_BYTES = 64 << 20
/** Of nested lists and objects. Much deeper ones exhaust the stack of the code that prints them. */
export const MAX_DEPTH = 200
/** differs: of a list, and of a text, whose schema sets no limit. */
export const MAX_ITEMS = 10_000
export const MAX_CHARACTERS = 65_536
/** In a larger body the first error is reported, not the first field by name. */
export const ALL_ERRORS_BYTES = 16 << 10
/** Of a certificate in PEM. */
export const MAX_PEM_CHARACTERS = 16_384

// Fair shares: requests are counted in windows

export const WINDOW_MS = 1000
/** Share of the time of the event loop above which requests wait for each other. */
export const SATURATED_SHARE = 0.9
/** Requests of a source or session in a window that are never too many, unless a setting is lower. */
export const MIN_SHARE = 100
/** For which a request waits. Below `REQUEST_MS`. */
export const MAX_WINDOWS = 3

// Responses

/** Smaller bodies are not compressed. */
export const MIN_COMPRESSED_BYTES = 1024
/** Larger bodies are sent in pieces of it. A page of 50 identities is one: each further one is a system call. */
export const PIECE_BYTES = 128 << 10
/** Of an unknown path in the log. */
export const LOGGED_PATH_CHARACTERS = 100

// Memory of services' data

/** Between reports of the activity of sessions to their owner. Far below the shortest timeout of a session, a minute. */
export const FLUSH_MS = 15_000
/** Sessions in one report. */
export const FLUSH_BATCH = 1000
/** Of a call that several requests wait for. Not above `CALL_LIMIT_MS` of rpc. */
export const LOAD_MS = 10_000
/** Loads of one value, if changes arrive meanwhile. The last one is returned, and not kept. */
export const MAX_LOADS = 3
/** Changes that arrive within it share a message. The first is sent at once. */
export const GATHER_MS = 20
/** The age of an identity in memory: no stream reports that it has connected to a router. */
export const IDENTITY_AGE_MS = 30_000
/** The age of the trust bundle. It is also replaced when a change of keys arrives. */
export const TRUST_BUNDLE_AGE_MS = 10_000
/** Between clocks, for access tokens. */
export const CLOCK_SKEW_SECONDS = 60
export const SESSION_CACHE_BYTES = 64 << 20
export const IDENTITY_CACHE_BYTES = 32 << 20
export const HEADER_CACHE_BYTES = 32 << 20
/** A list of more than a sixteenth of it is not kept. */
export const LIST_CACHE_BYTES = 64 << 20

// Audit

/** Of a page for clients. */
export const DEFAULT_AUDIT_PAGE = 100
export const MAX_AUDIT_PAGE = 500
/** At the same time. Each keeps a page in memory. */
export const MAX_EXPORTS = 4
/** Of one owner. Below `REQUEST_MS`, so that the response names the owner. */
export const AUDIT_READ_MS = 8000

// Status page

/** For all replicas to answer. Below `REFRESH_SECONDS`. */
export const DESCRIBE_MS = 2000
export const REFRESH_SECONDS = 10
/** Without use of the page, its own refreshes aside. */
export const IDLE_MINUTES = 15
/** Of a table of requests. */
export const MAX_ROWS = 100
/** Heads of a schema that are remembered: at `REFRESH_SECONDS`, a quarter of an hour. */
export const MAX_HEADS = 100
/** A follower that has missed a change for longer is late. */
export const LATE_MS = 2000
/** For which a refusal of a queue needs attention. */
export const RECENT_MS = 600_000
/** Of a certificate before it needs attention. Those between processes are short-lived and replaced days before. */
export const MIN_DAYS_LEFT = {
  network: { warning: 14, critical: 2 },
  process: { warning: 2, critical: 1 },
} as const

// Event streams

/** A client that has not answered a ping by the next one is disconnected. A ping also counts as use of the session. */
export const PING_MS = 30_000
/** For a client to close its stream. */
export const CLOSE_MS = 1000
/** Of a message of a client. */
export const STREAM_MESSAGE_BYTES = 1 << 20
/** Events that a client has not read. With more it is disconnected. */
export const MAX_QUEUED_BYTES = 4 << 20
/** Of one client under way. */
export const MAX_STREAM_REQUESTS = 4
/** Until a subscription misses no event. Below the 5 s for which the original's command line waits. */
export const READY_MS = 4000
/** Of one stream. */
export const MAX_SUBSCRIPTIONS = 100
/** Between counts of entities, unless the subscription says otherwise, and at least. */
export const COUNTS_MS = 300_000
export const MIN_COUNTS_MS = 1000
export const MAX_INTERVAL_CHARACTERS = 64
/** Between polls of the audit, while it has no further changes. */
export const AUDIT_POLL_MS = 500
/** Changes of one poll. */
export const AUDIT_POLL_PAGE = 200
export const AUDIT_BACKOFF_MS = { firstMs: 500, longestMs: 5000 } as const
/** Without a message of sessions, which sends one each second. */
export const EVENT_SILENCE_MS = 5000
export const EVENT_BACKOFF_MS = { firstMs: 100, longestMs: 2000 } as const

// OpenID Connect

/** Of state, nonce and scope. */
export const MAX_PARAMETER_CHARACTERS = 2048
export const MAX_URI_CHARACTERS = 2048
export const LOGGED_URI_CHARACTERS = 256
export const MAX_SCOPES = 50
export const MAX_CONFIG_TYPES = 500
/** Of all config types of a login. */
export const MAX_CONFIG_TYPES_CHARACTERS = 16 << 10
/** The age of the cookie that ties a login to its browser. Above the time that a login may take. */
export const LOGIN_COOKIE_SECONDS = 3600
/** On the login page. */
export const MAX_SIGNERS = 50

// Web console

/** Of one file, and of all files in memory. */
export const CONSOLE_FILE_BYTES = 32 << 20
export const CONSOLE_CACHE_BYTES = 96 << 20
