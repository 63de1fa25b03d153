/** A start asks a process so often whether it is ready. */
export const START_POLL_MS = 20

/** The answer may take so long: the machine may be busy. */
export const START_ANSWER_MS = 5000

/** A start reports what a process waits for after this time. */
export const WAITING_REPORT_MS = 20_000

/** A start fails when the state of a process has not changed for so long. Longer than `WAITING_REPORT_MS`. */
export const START_STALLED_MS = 600_000

/** Between starts of a process that ends before it is ready because something is unavailable. */
export const START_PAUSES = { firstMs: 500, longestMs: 5000 }

/** Between restarts of a process that ends by itself. */
export const RESTART_PAUSES = { firstMs: 100, longestMs: 5000 }

/** After a run of this length the pause is short again. Longer than the longest pause. */
export const STEADY_RUN_MS = 10_000

/** A process is killed after so many unanswered probes within `OVERLAY_SILENCE_SECONDS`. One may fail because the launcher itself is late, or the machine was suspended. */
export const FAILED_PROBES = 6

/** Status and metrics wait so long for the readiness of a process. Shorter than what scrapers allow. */
export const READINESS_MS = 1500

/** Status and metrics wait so long for the metrics of a process. Shorter than what scrapers allow (10 s by default). */
export const METRICS_MS = 3000

/** Of the answer of a process: far above the size of its metrics. */
export const OPS_ANSWER_BYTES = 16 * 1024 * 1024

/** The end of a log in which the reason of an exit is searched. */
export const LOG_END_BYTES = 64 * 1024

/** A longer line of a process is split. Not above the smallest `OVERLAY_LOG_MIB`: it would not fit into a file. */
export const LOG_LINE_BYTES = 1 << 20

/** A process of the product is killed when its stop takes longer. Longer than the limit of the process itself (20 s). */
export const PROCESS_STOP_MS = 25_000

/** The same for other programs. */
export const PROGRAM_STOP_MS = 10_000

/** The same for Postgres, which writes up to max_wal_size of changes to the disk. With the other limits of a stop, below `TimeoutStopSec` in docs/operations.md (150 s). */
export const POSTGRES_STOP_MS = 50_000

/** SIGKILL follows another signal after this time. Longer than the 5 s in which Postgres ends its children after SIGQUIT. */
export const PROGRAM_KILL_MS = 8000

/** The children of a killed Postgres may use its data for so long. */
export const POSTGRES_ORPHANS_MS = 3000

/** Between attempts to use a database that is unavailable. */
export const DATABASE_RETRY_MS = 1000

/** The bus waits so long for a client to read the final message, and for all of them when it stops. */
export const BROKER_CLOSE_MS = 1000

/** The longest line of a client of the bus, as in nats-server. Above the longest subject (`busLimits`). */
export const BROKER_LINE_BYTES = 4096

/** Life of the certificate of a process. Several times `CERTIFICATE_RENEWAL_MS`, for renewals that fail. */
export const CERTIFICATE_HOURS = 7 * 24

/** Age at which it is renewed. */
export const CERTIFICATE_RENEWAL_MS = 86_400_000

/** Between checks of these ages. After a wrong clock is corrected, processes refuse each other for so long at most. */
export const CERTIFICATE_CHECK_MS = 60_000

/** Of the path of a socket on Linux and macOS, without the final zero. */
export const SOCKET_PATH_BYTES = 103

/** Of one component, or with all components. Postgres has connections for so many (`max_connections`). */
export const MAX_PROCESSES = 16

/** Ports of the processes, below those of outgoing connections: the system takes none of them between choice and use. */
export const LOWEST_PORT = 20_000

/** The first port of outgoing connections. */
export const EPHEMERAL_PORT = 32_768

/** Of `npm run audit`: a condition that no index serves reads the whole table. */
export const AUDIT_READ_MS = 600_000
