// Times and sizes of services.

/** For the database to answer a health check. Less than HEALTH_CHECK_MS, so that the check names the database. */
export const DATABASE_CHECK_MS = 1200

/** Audit rows that clients cause in one process without a session: rows stay for months. */
export const AUDIT_LIMITS = { perSource: 10, total: 60, withinMs: 60_000 }

/** Characters of a text of a client in a log line or an audit row. */
export const REFUSED_CHARACTERS = 128
