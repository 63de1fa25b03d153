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
