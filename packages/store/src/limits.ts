/**
 * Milliseconds between two reads of the end of the change log in the database, and so between two heartbeats on each
 * stream of changes. Notifications are faster, but may be lost. Must be well below FRESH_MS.
 */
export const POLL_MS = 1000

/** Milliseconds for which a follower may serve reads after a poll of its owner that found nothing new. */
export const FRESH_MS = 2000

/** Milliseconds without a message after which a stream is dead. Must be above FRESH_MS, or slow polls end streams. */
export const SILENCE_MS = 3000

/** Milliseconds in which commits share a notification. Adds to the delay until other replicas see a commit. */
export const NOTIFY_MS = 10

/** Milliseconds between two polls that notifications cause. Bounds the reads of replicas of a busy owner. */
export const NOTIFIED_POLL_MS = 50

/** Most keys of changed rows in a notification. The message must stay far below the limit of the bus, 1 MiB. */
export const NOTIFIED_KEYS = 100

/**
 * Milliseconds between two messages that only move the position, past changes of other kinds. Followers that need the
 * position sooner pull.
 */
export const POSITION_MS = 100

/** Milliseconds in which changes share a message to a follower. Far below what a revocation may take. */
export const GATHER_MS = 20

/** Longest GATHER_MS that an owner grants. Must be below POLL_MS: messages without changes may not wait longer. */
export const MOST_GATHER_MS = 500

/** Milliseconds that a statement outside a transaction, and a transaction without a deadline, may take. */
export const STATEMENT_MS = 30_000

/** Milliseconds beyond its limit after which a statement without an answer counts as lost with its connection. */
export const GRACE_MS = 1000

/**
 * Milliseconds before a transaction is repeated after a deadlock, up to twice as many: the other one takes its locks
 * meanwhile. Must be below STATEMENT_MS.
 */
export const CONFLICT_PAUSE_MS = 20

/** Milliseconds after which an unused connection is closed. Above the intervals of jobs that run each half minute. */
export const UNUSED_MS = 60_000

/** Milliseconds after which the server ends an idle transaction: a replica that hangs must not keep its locks. */
export const IDLE_MS = 15_000

/** Connections of each service. The `max_connections` that operators set depends on it. */
export const POOL_SIZE = 8

/** Seconds after which a connection is replaced. It bounds the plans that a server keeps for it. */
export const CONNECTION_SECONDS = 600

/** Shortest milliseconds between two replacements of the name of a prepared statement. Far below CONNECTION_SECONDS. */
export const REPLACE_MS = 60_000

/** Texts of statements whose uses are counted. Far above all names of prepared statements. */
export const COUNTED_TEXTS = 2000

/** Uses after which a text is prepared. */
export const USES_TO_PREPARE = 5

/** Milliseconds between two signs of life of a lock's connection. Far below LOCK_IDLE_MS. */
export const LOCK_BEAT_MS = 5000

/** Milliseconds of silence after which the server ends a lock's connection, and releases the lock. */
export const LOCK_IDLE_MS = 30_000

/** Milliseconds between two merges of the parts of row counts, and the number of parts from which they are merged. */
export const MERGE_COUNTS_MS = 15_000
export const MANY_COUNTS = 100

/** Most bytes of the members of a row. A row with its change must fit a message. */
export const MOST_ROW_BYTES = 256 * 1024

/** Most bytes of a page: half of a message, so that one more row always fits. */
export const MOST_PAGE_BYTES = 8 * 1024 * 1024

/** Most rows in memory for one page. */
export const PAGE_ROWS = 500

/** Rows of a table that a walk through all of it reads at once. */
export const WALK_ROWS = 1000

/** Single rows that one statement reads. Each may have MOST_ROW_BYTES. */
export const READ_TOGETHER_ROWS = 32

/** Single rows that one transaction writes. It holds their locks for so many rounds at most. */
export const WRITE_TOGETHER_ROWS = 100

/** Bytes of bodies that one transaction writes. A larger one is written alone. */
export const WRITE_TOGETHER_BYTES = 256 * 1024

/** Attempts of a write whose references are reloaded between their look-up and their lock. */
export const LOOK_UP_TRIES = 3

/** Most symbols by which a list is sorted. */
export const SORT_KEYS = 5

/** Ids of one call that asks which entities exist. Names are short, so the answer is far below a message. */
export const IDS_PER_CALL = 500

/** Milliseconds of such a call, while the load of a consumer waits. */
export const IDS_CALL_MS = 30_000

/** Texts of documents whose compact form is kept, and their most characters. */
export const COMPACTED_TEXTS = 1000
export const COMPACTED_CHARACTERS = 500

/** Days in which a success makes a source familiar to an account. */
export const FAMILIAR_DAYS = 30

/** Most rows of wrong guesses, and of successes. */
export const GUESS_ROWS = 100_000

/** Milliseconds between two removals of what is out of date in them. */
export const REMOVE_GUESSES_MS = 60_000
