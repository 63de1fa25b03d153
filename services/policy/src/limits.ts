// Times and sizes of this service. Change one only after reading what depends on it.

// Service-updates times
/** Milliseconds between two reads of the stored times, and two attempts to become the replica that stores. */
export const TICK_MS = 1000
/** Milliseconds until a change is stored. Every replica that has applied it answers with its time before. */
export const STORE_GATHER_MS = 20
/** Most of the time that stores take: a long one delays the next, up to TICK_MS. */
export const MOST_STORING = 1 / 20
/** Milliseconds for a page of missed changes of identity. */
export const PULL_MS = 10_000

// Memory and streams
/** Milliseconds that a request waits for memory. Below the deadline of a request, 10 s. */
export const WAIT_MS = 2000
/** Reads of a list that changes during each, after which it may show neighbouring states. */
export const MOST_READS = 8
/** Identities of one change that are named one by one. Beyond, all are notified. */
export const MOST_NAMED = 1000
/** Milliseconds in which changes share a message; the first is sent at once. */
export const HEADERS_GATHER_MS = 20
/** Identities that wait for a reader one by one. Beyond, all are announced. Above MOST_NAMED. */
export const MOST_NAMED_HEADERS = 10_000

// Readiness
/** Milliseconds without fresh memory after which a replica may leave service. Above the time in which replicas load after a failover. */
export const STUCK_MS = 15_000
/** Milliseconds for which the answer of another replica counts. Above the time between two probes, each of which asks. */
export const FRESH_ANSWER_MS = 30_000

// Second factors and posture
/** Milliseconds for a write of lapses. */
export const LAPSE_WRITE_MS = 5000
/** Lapses of one transaction. */
export const LAPSES_AT_ONCE = 500
/** Milliseconds in which lapses are reported together: each search costs time for every identity. */
export const LAPSE_GATHER_MS = 100
/** Milliseconds after which a clock that was set is noticed. */
export const LONGEST_SLEEP_MS = 60_000
/** Milliseconds before a failed report is repeated. */
export const LAPSE_PAUSES = { firstMs: 100, longestMs: 2000 }
/** API sessions whose states take little of POSTURE_BUDGET_BYTES: ended ones are not searched. */
export const FEW_API_SESSIONS = 50
/** Bytes of the posture data of one identity as JSON. A change of it must fit a message. */
export const POSTURE_BUDGET_BYTES = 64 * 1024

// Schemas of config types
/** Bytes of a schema. A stored one may be larger: there was no limit when it was written. */
export const MOST_SCHEMA_BYTES = 64 * 1024
/** Keywords and listed values in a schema. Bounds the time to compile it. */
export const MOST_WORDS = 2000
/** Steps of the validation of one document. */
export const MOST_SCHEMA_STEPS = 3_000_000
/** Schemas that apply inside each other to one document. */
export const MOST_DEPTH = 1000
/** Characters that take as long as one keyword. */
export const TEXT_STEP = 16
/** Steps of the patterns of one schema for one document: a fraction of a second. */
export const MOST_PATTERN_STEPS = 10_000_000
/** Characters of a pattern. */
export const LONGEST_PATTERN = 1000
/** Instructions of the patterns of one schema. Bounds the time to compile them. */
export const MOST_PATTERN_SIZE = 10_000
/** Bytes of a list of failed requests. Below the limit of an answer, 16 MiB. */
export const FAILED_REQUESTS_BYTES = 8 * 1024 * 1024

// Router data models
/** Members of one event. With long ids, far below PART_BYTES. */
export const LINKS_PER_EVENT = 2000
/** Identities of a change set beyond which a full state is sent, if they are half of those in scope. */
export const FEW_IDENTITIES = 1000
/** Identities of a change set beyond which a full state is sent. */
export const MOST_IDENTITIES = 20_000
/** Bytes of a part of a full state or change set. A larger event is a part of its own. */
export const PART_BYTES = 256 * 1024
/** Bytes of a change set beyond which a full state is sent. A million links fit. */
export const MOST_CHANGE_BYTES = 32 * 1024 * 1024
/** Bytes of a full state that are kept for its slowest reader. */
export const WINDOW_BYTES = 32 * 1024 * 1024
/** Milliseconds for which a reader may stop the others, before its stream ends. */
export const STALLED_MS = 10_000
/** Full states that are built at once. Each may have WINDOW_BYTES. */
export const FULL_STATES = 4
/** Milliseconds in which changes share a change set. */
export const MODEL_GATHER_MS = 25
/** Reads of the heads until memory has them and nothing beyond. After as many, a model may have later changes. */
export const EXACT_READS = 8
/** Milliseconds between two reads of the heads without changes. Routers get indexes as old as this from other replicas. */
export const MODEL_TICK_MS = 5000
/** Milliseconds after which a router without changes gets the index. Far below the time that the journal spans. */
export const QUIET_MS = 30_000
/** Milliseconds between two empty parts. At least one a second is promised. */
export const MODEL_HEARTBEAT_MS = 500
/** Bytes, about, of what the changes of the journal touched: some minutes of a busy network. */
export const JOURNAL_BYTES = 64 * 1024 * 1024
/** Identities of one change that are noted by their ids. Of more, a bit each costs less. */
export const FEW_TOUCHED = 64
/** Bytes that count for an id, and for a chunk of bits, in the journal. */
export const TOUCHED_ENTRY_BYTES = 100
export const TOUCHED_CHUNK_BYTES = 600
/** Indexes with their positions. At MODEL_GATHER_MS some minutes, at MODEL_TICK_MS hours. */
export const CHECKPOINTS = 10_000
/** Change sets that are kept for other streams. */
export const MOST_SHARED_SETS = 1000
/** Streams that wait for a full state. Above the routers of a large network. */
export const WAITING_STATES = 20_000
