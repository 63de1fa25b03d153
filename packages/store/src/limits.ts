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

/**
 * Milliseconds between two messages that only move the position, past changes of other kinds. Followers that need the
 * position sooner pull.
 */
export const POSITION_MS = 100

/** Milliseconds in which changes share a message to a follower. Far below what a revocation may take. */
export const GATHER_MS = 20

/** Longest GATHER_MS that an owner grants. Must be below POLL_MS: messages without changes may not wait longer. */
export const MOST_GATHER_MS = 500

/** Changes, and their bytes, that fill a message. Far below MESSAGE_LIMIT_BYTES. */
export const MESSAGE_CHANGES = 500
export const MESSAGE_BYTES = 1024 * 1024

/** Most bytes of one row in its change, as stored: a message that is not yet full has room for it. */
export const MOST_CHANGE_BYTES = 4 * 1024 * 1024

/** Changes, and their characters, that one statement appends. */
export const APPENDED_ROWS = 2000
export const APPENDED_CHARACTERS = 16 * 1024 * 1024

/** Most changes, and bytes of them, in memory. Followers read larger writes from the database. */
export const RECENT_CHANGES = 20_000
export const RECENT_BYTES = 16 * 1024 * 1024

/** Changes that one read of the database returns. */
export const READ_CHANGES = 500

/** Milliseconds for which change rows are kept. A follower that was stopped for longer must reload. */
export const KEEP_CHANGES_MS = 24 * 60 * 60 * 1000

/** Milliseconds between two removals of change rows and of audit rows, and the rows that one statement removes. */
export const PRUNE_CHANGES_MS = 10 * 60 * 1000
export const PRUNE_AUDIT_MS = 60 * 60 * 1000
export const PRUNED_ROWS = 1000

/** Milliseconds for which deletions of followed entities are recorded. Longer than any write takes. */
export const KEEP_DELETED_MS = 60 * 60 * 1000

/** Locks that writers share and consumers take exclusively. Few, because a consumer may need all of them. */
export const REFERENCE_LOCKS = 64

/** Milliseconds before a follower connects again after a failure, first and at most. */
export const FOLLOW_PAUSE_MS = 100
export const LONGEST_FOLLOW_PAUSE_MS = 2000

/** Milliseconds before a stream of cached rows is opened again after a failure. Far below SILENCE_MS. */
export const STREAM_PAUSE_MS = 250

/** Milliseconds without a message after which a load has failed. Its owner reads pages from the database meanwhile. */
export const LOAD_SILENCE_MS = 30_000

/** Milliseconds of a pull. Callers wait for it. */
export const PULL_MS = 2000

/** Milliseconds of a request for one row, its attempts, and the pause before the second one. */
export const ROW_MS = 5000
export const ROW_TRIES = 3
export const ROW_PAUSE_MS = 100

/** Rows that a projection applies before it yields to other work. */
export const STEP_ROWS = 10

/** Attempts of the same changes before a consumer tries each of them alone. */
export const CONSUMER_TRIES = 3

/** Milliseconds in which another change has succeeded, so that a failure is due to the change. */
export const RECENT_SUCCESS_MS = 60_000

/** Milliseconds of the transaction of a consumer that loads all rows. It locks the row of its position at its end. */
export const CONSUMER_LOAD_MS = 600_000

/** Milliseconds that a write waits for its followers. Below the 10 s of a request: the rest is left for its answer. */
export const AFTER_COMMIT_MS = 5000

/**
 * Milliseconds that a write waits for a follower whose last wait has failed: enough for one that works again. One write
 * in LAGGING_MS waits for it as long as others, because it may be slow rather than unavailable.
 */
export const LAGGING_WAIT_MS = 100
export const LAGGING_MS = 30_000

/** Milliseconds that the start waits for the bus. It then goes on without it. */
export const BUS_CONNECT_MS = 1000

/** Milliseconds before the bus is connected again, up to twice as many. */
export const BUS_RECONNECT_MS = 500

/** Milliseconds of one attempt to connect the bus. */
export const BUS_DIAL_MS = 2000

/** Milliseconds between two pings of the bus. One that is not answered before the next ends the connection. */
export const BUS_PING_MS = 1500

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

/** Milliseconds between two heartbeats of a lock's connection. Far below LOCK_IDLE_MS. */
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

/** Milliseconds of a read of the audit: a filter that no index serves reads the whole table. */
export const AUDIT_READ_MS = 5000

/** Reads of the audit at once, and those that wait. Far below POOL_SIZE: requests of clients need connections. */
export const AUDIT_READS = 2
export const AUDIT_READS_WAITING = 20

/** Changes of a page of the audit, and their bytes: less than half of a message, so that one more row always fits. */
export const AUDIT_PAGE_ROWS = 500
export const AUDIT_PAGE_BYTES = 4 * 1024 * 1024

/** Days in which a success makes a source familiar to an account. */
export const FAMILIAR_DAYS = 30

/** Most rows of wrong guesses, and of successes. */
export const GUESS_ROWS = 100_000

/** Milliseconds between two removals of what is out of date in them. */
export const REMOVE_GUESSES_MS = 60_000
