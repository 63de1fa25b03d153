// Times and sizes of this service. Change one only after reading what depends on it.

// Connections of routers
/** Milliseconds for a TLS handshake. Bounds the connections that a peer without a certificate can hold. */
export const HANDSHAKE_MS = 10_000
/** Milliseconds for the hello after the handshake. */
export const HELLO_MS = 10_000
/** Routers that are admitted at a time. Each writes a row; after a restart all connect at once. */
export const ADMITTED_AT_ONCE = 32
/** Milliseconds after which a router whose set-up is slow no longer occupies one of ADMITTED_AT_ONCE. */
export const SET_UP_MS = 2000
/** Bytes of a message that the channel skips. Metrics of a router with some thousand links exceed LIST_BYTES; closing the channel would not make them smaller. */
export const SKIPPED_BYTES = 64 * 1024 * 1024
/** Log lines about refused connections of peers that are no known routers: one a minute for each reason and source. */
export const REFUSAL_LINES = { perSource: 1, total: 1000, withinMs: 60_000 }
/** Replacements of an open connection within REPLACED_WITHIN_MS after which the identity is contested. */
export const REPLACEMENTS = 3
/** Milliseconds. Above the time in which a router that lost its connection retries. */
export const REPLACED_WITHIN_MS = 60_000
/** Bytes of the secret of a group of connections. Those of routers have 16. */
export const MAX_SECRET_BYTES = 64
/** Bytes of such a secret that this service makes. */
export const SECRET_BYTES = 16
/** Routers whose refusals are remembered, so that each is logged once. Above the number of routers of a replica. */
export const MOST_REFUSED = 20_000
/** Bytes of the link listeners of a router. The limit of the headers of a hello. */
export const LISTENER_BYTES = 16_384
/** Listeners of a router. Of those for clients, more are not stored; a router with more for links is refused. */
export const MOST_LISTENERS = 100
/** Characters of a text or id that a router reports. */
export const LONGEST_TEXT = 500
/** Milliseconds for pki to issue certificates. A repeated request of the router is dropped meanwhile. */
export const EXTEND_MS = 20_000
/** Milliseconds between two checks of all certificates of routers. */
export const CERTIFICATE_CHECK_MS = 3_600_000
/** Milliseconds before expiry. Below the 7 days before which routers renew their certificates. */
export const OVERDUE_MS = 5 * 86_400_000
/** Log lines about overdue certificates of one check; one more line counts the others. */
export const MAX_OVERDUE_LOGGED = 20
/** Former certificates of a router that stay valid until it connects with the new one. */
export const MAX_FORMER = 8

// Messages of routers
/** Bytes of a message about one entity. Real ones are far below. */
export const MOST_BYTES = 256 * 1024
/** Bytes of a message that lists what a router has: the limit of the channel. */
export const LIST_BYTES = 4 * 1024 * 1024
/** Protobuf reads of a message, some 15 ms. A router with 20,000 circuits confirms them, with their idle times, in one message. */
export const MOST_READS = 150_000
/** Protobuf reads of metrics. All metrics of a router with 3,000 links take 240,000 reads, some 12 ms. */
export const METRICS_READS = 300_000
/** Protobuf reads of connected identities. All those of a router with 60,000 take 420,000 reads, some 30 ms. */
export const CONNECT_READS = 450_000
/** Protobuf reads per unit of the work budget. A unit is about a microsecond. */
export const READS_PER_UNIT = 8
/** Units of the work budget for each entity that a message is about. */
export const UNITS_PER_ITEM = 20
/** Units of the work budget for each signed token of a session: its signature is verified. */
export const UNITS_PER_SIGNATURE = 150
/** Units of the work budget for each message. */
export const UNITS_PER_MESSAGE = 40
/** Bytes of a message per unit of the work budget. */
export const BYTES_PER_UNIT = 64
/** Units that one router may spend in a second: a fifth of the event loop. */
export const UNITS_PER_SECOND = 200_000
/** Units that an idle router may spend at once: some 20 ms. */
export const BURST_UNITS = 20_000
/** Work budgets in memory, above which full ones are dropped. Above the number of routers of a replica. */
export const MOST_BUDGETS = 20_000

/** Network interfaces of a router that are stored, and addresses of each. */
export const MOST_INTERFACES = 100
export const LONGEST_ADDRESS_LIST = 100
/** Units of the work budget for a report that changes a row: a router sends few in an hour. */
export const UNITS_PER_REPORT = 2000
/** Alerts of one message that become events, and details and related entities of each. */
export const MOST_ALERTS = 100
export const MOST_ALERT_MEMBERS = 20
/** Connections that a link shows. */
export const MOST_LINK_CONNECTIONS = 20
/** Identities that one router reports as connected. */
export const MOST_CONNECTED = 200_000
/** Characters of the id of an identity that a router reports. */
export const MAX_IDENTITY_ID_LENGTH = 64
/** Identities of one report whose connections become events, and connections of each. */
export const MOST_CONNECT_EVENTS = 500
export const MOST_CONNECT_DETAILS = 4
/** Milliseconds between two reports of identities that are connected. With ACTIVITY_GATHER_MS below CONNECTED_SECONDS. */
export const CONNECTED_REPORT_MS = 30_000

// Presence and messages between replicas
/** Milliseconds of the lease of a replica, renewed at a third of it. A replica that dies is dropped after it. */
export const LEASE_MS = 6000
/** Rows of one write of presence, each up to some KiB. */
export const PRESENCE_ROWS_PER_WRITE = 200
/** Bytes of a notification with rows. Below the limit of the bus, 1 MiB. */
export const PRESENCE_NOTIFICATION_BYTES = 512 * 1024
/** Polls between two deletions of dead replicas: 60 s. */
export const CLEANUP_POLLS = 30
/** Milliseconds after the end of a lease at which it is polled. */
export const LEASE_MARGIN_MS = 20
/** Seconds after the end of its lease at which the rows of a replica are deleted. Above LEASE_MS. */
export const DEAD_REPLICA_SECONDS = 60
/** Milliseconds without an acknowledgement over the bus after which a command goes through the database. */
export const ACKNOWLEDGE_MS = 250
/** Commands to other replicas under way. */
export const MAX_PENDING_COMMANDS = 10_000
/** Milliseconds between two reads of stored answers, while some are expected. */
export const ANSWER_POLL_MS = 50
/** Milliseconds between two reads of stored commands: with the bus, only those that it lost are stored. */
export const COMMAND_POLL_MS = 1000
/** The same without the bus. Adds to each dial over another replica. */
export const COMMAND_POLL_WITHOUT_BUS_MS = 100
/** The same without routers: a command then reports that its router has left. */
export const COMMAND_POLL_IDLE_MS = 5000
/** Milliseconds between two deletions of old commands. */
export const COMMAND_CLEANUP_MS = 60_000
/** Ids of executed commands. Must cover those of the time in which a command may arrive twice. */
export const MAX_EXECUTED_COMMANDS = 20_000
/** Bytes of answers to executed commands. */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024
/** Milliseconds for the delivery of a message without a reply. */
export const DELIVERY_MS = 10_000
/** Milliseconds that the sender waits longer than the router may take: the time of the router begins on arrival. */
export const DELIVERY_GRACE_MS = 1000
/** Bytes of a command or answer over the bus. Below the limit of the bus, 1 MiB. */
export const MAX_BUS_BYTES = 512 * 1024
/** Seconds for which a stored command outlives its deadline. */
export const COMMANDS_KEPT_SECONDS = 60
/** Milliseconds for a router to answer an inspection. Below the 10 s of the request. */
export const INSPECT_ROUTER_MS = 7000
/** Routers that one inspection asks at a time. */
export const INSPECTED_AT_ONCE = 50
/** Routers of one inspection. */
export const MAX_INSPECTED = 10_000
/** Values that one inspection names. */
export const MAX_INSPECTED_VALUES = 100
/** Characters of the pattern of an inspection. */
export const MAX_PATTERN_LENGTH = 1000
/** Bytes of the values of one inspection. Below the limit of an answer, 16 MiB. */
export const MAX_INSPECTION_BYTES = 12 * 1024 * 1024
/** Routers that one validation asks at a time; ten times as many terminators. */
export const VALIDATED_AT_ONCE = 10
/** Milliseconds for a router to answer a validation. It asks its clients about terminators for up to 30 s. */
export const VALIDATE_ROUTER_MS = 40_000
/** Circuits, links or terminators that a router may say it has, when it is validated. Real ones have up to 20,000 circuits. */
export const MOST_VALIDATED = 50_000
/** Destinations that are shown of such a circuit. */
export const MOST_DESTINATIONS = 20
/** Events that wait for a slow reader before its stream ends. */
export const MAX_WAITING_EVENTS = 10_000

// API sessions of routers
/** Routers that receive a full state at a time: each may have 256 KiB queued. */
export const FULL_STATES_AT_ONCE = 128
/** Milliseconds between two full states that one router requests. */
export const FULL_STATE_REPEAT_MS = 10_000
/** Milliseconds that the end of a full state waits for changes of other replicas. */
export const FULL_STATE_CATCH_UP_MS = 2000
/** Milliseconds: logins of this time may still arrive through another replica. Above FULL_STATE_CATCH_UP_MS. */
export const FULL_STATE_MARGIN_MS = 5000
/** Milliseconds in which heartbeats of API sessions share a write. Added to it, the 60 s of routers must stay below CONNECTED_SECONDS. */
export const ACTIVITY_GATHER_MS = 5000
/** Marks of one call or statement. */
export const ACTIVITY_PAGE = 1000
/** Milliseconds for a call to identity about activity. */
export const ACTIVITY_WAIT_MS = 2000
/** Seconds for which a heartbeat counts as a connection. Above the 60 s of routers and ACTIVITY_GATHER_MS. */
export const CONNECTED_SECONDS = 75
/** Identities of one question about granted routers. An answer may list as many routers for each. */
export const IDENTITIES_PER_CALL = 200
/** Milliseconds for such a question. Logins wait for it. */
export const GRANTED_ROUTERS_MS = 2000
/** Milliseconds between two reports of pushed credentials. Must be below the time after which identity no longer waits for a replica. */
export const PUSH_REPORT_MS = 1000
/** Milliseconds in which positions share a report. Adds to each login. */
export const PUSH_GATHER_MS = 3
/** Milliseconds between two removals of expired fingerprints. Claims are verified with the time of each. */
export const FINGERPRINT_EXPIRY_MS = 30_000
/** Tokens of one statement about tokens that a router lists. */
export const TOKENS_AT_ONCE = 2000
/** Milliseconds between two deletions of tokens of ended sessions. */
export const PRUNE_ENDED_MS = 60_000
/** Milliseconds before a failed stream of ended sessions is opened again. */
export const FOLLOW_PAUSES = { firstMs: 50, longestMs: 2000 }
/** Minutes for which tokens of ended sessions are stored. Above the lag of any follower. */
export const ENDED_SESSIONS_KEPT_MINUTES = 10
/** Milliseconds for a call that a claim of a router needs. Its client waits for it. Must be above the two seconds after which policy answers from the memory that it has. */
export const VERIFY_ACCESS_MS = 3000
/** Milliseconds until a removal is sent again. Routers handle messages in parallel: a removal may overtake the message that adds the session. */
export const REPEAT_REMOVAL_MS = 2000
/** Milliseconds between two drops of encoded sessions, which take as much memory as the sessions. */
export const DROP_ENCODINGS_MS = 60_000
/** Milliseconds before policy is asked again after a failure. */
export const PUSH_PAUSES = { firstMs: 100, longestMs: 2000 }

// The router data model
/** Full states that are read and sent at a time. Each is in memory as long as its router takes to receive it. */
export const FULL_MODELS_AT_ONCE = 8
/** The same for comparisons, apart: routers that do not answer must not delay others. */
export const COMPARED_MODELS_AT_ONCE = 2
/** Milliseconds for policy to begin or continue a full state. */
export const FULL_MODEL_SILENCE_MS = 30_000
/** Milliseconds for a router to receive a full state. It then loses its channel, because others wait. */
export const FULL_MODEL_MS = 120_000
/** Milliseconds in which a router receives FULL_MODELS_IN_A_ROW full states at most. */
export const FULL_MODEL_REPEAT_MS = 10_000
/** One may be of a subscription that the router has replaced meanwhile. */
export const FULL_MODELS_IN_A_ROW = 2
/** Subscriptions of one router within SUBSCRIPTIONS_WITHIN_MS. Real ones come every five minutes, and after a loss. */
export const MOST_SUBSCRIPTIONS = 30
export const SUBSCRIPTIONS_WITHIN_MS = 60_000
/** Routers whose subscriptions are counted. */
export const MOST_SUBSCRIBERS = 20_000
/**
 * Seconds of a subscription. wire: the original has the same limits. Real routers ask for 300, poll every 30 s whether they
 * are over, and only then renew it: changes of that time must reach them, too.
 */
export const SUBSCRIPTION_SECONDS = { least: 10, most: 360, untilRenewed: 90 }
/** Characters of the id of a subscription, and of a timeline. */
export const MAX_SUBSCRIPTION_ID_LENGTH = 100
/** Milliseconds of silence after which a stream of changes from policy is opened again. */
export const MODEL_SILENCE_MS = 5000
/** Milliseconds before a stream of policy, or the keys of pki, are requested again. */
export const MODEL_PAUSES = { firstMs: 100, longestMs: 2000 }
/** Milliseconds for pki to return its keys. */
export const MODEL_KEYS_MS = 10_000
/** Milliseconds between two removals of expired revocations from routers. */
export const REVOCATION_EXPIRY_MS = 30_000
/** Revocations that are encoded again for each router; above, those since the last time, up to an eighth of all. */
export const FEW_REVOCATIONS = 100
/** Milliseconds between two comparisons of the model of a router. Each costs as much as a full state. */
export const MODEL_CHECK_MS = 3_600_000
/** Milliseconds after which a difference is looked for again: it may be a change on its way. */
export const MODEL_RECHECK_MS = 10_000
/** Milliseconds for a router to receive a full state and compare its model with it. */
export const COMPARE_MODEL_MS = 60_000
/** Protobuf reads of the answer. */
export const DIFFERENCE_READS = 400_000
/** Differences of a router that are reported. The gateway has those of all routers in memory. */
export const MOST_DIFFERENCES = 100

// Sessions
/** Milliseconds between two reads of the keys of session tokens. Changes of pki are also followed. */
export const SESSION_KEY_POLL_MS = 60_000
/** Milliseconds for a read of them. Creates wait for the first one. */
export const READ_SESSION_KEY_MS = 2000
/** Signed tokens in memory, of some 1 KiB each. */
export const SIGNED_TOKENS = 30_000
/** Verified tokens in memory, as large. */
export const VERIFIED_TOKENS = 30_000
/** Bytes of grants in memory. */
export const GRANTS_BYTES = 32 << 20
/** Bytes of sessions in memory. */
export const HELD_SESSIONS_BYTES = 32 << 20
/** Bytes that count for an identity in that memory. */
export const GRANT_ENTRY_BYTES = 500
/** Bytes that count for a session in memory, besides its tags. */
export const SESSION_ROW_BYTES = 900
/** Ids of sessions that end during lookups, above which the results of lookups are not kept. */
export const MOST_ENDED = 10_000
/** Milliseconds for the deletion of a router that leaves the network. */
export const DELETE_ROUTER_MS = 30_000
/** Milliseconds for a read of the end of the change log of policy. */
export const HEAD_MS = 1000
/** Milliseconds between two polls while revocations are pending. */
export const SWEEP_TICK_MS = 1000
/** Milliseconds between two polls while none is pending. Each replica is woken by the changes that it follows. */
export const SWEEP_REST_MS = 5000
/** Pages that a replica sweeps before another one may continue, and the process may stop. */
export const PAGES_AT_ONCE = 5
/** Milliseconds between two deletions of old revocations. */
export const PRUNE_REVOCATIONS_MS = 60_000
/** Milliseconds for which revocations are stored. An older grant is refused, and policy is asked again. */
export const REVOCATIONS_KEPT_MS = 300_000
/** Milliseconds before a failed sweep is repeated. */
export const SWEEP_PAUSES = { firstMs: 100, longestMs: 2000 }
/** Sessions of one question to policy. */
export const SESSIONS_PER_CALL = 1000
/** Ids of one question which entities exist. */
export const NAMES_PER_CALL = 500
/** Milliseconds for a question of a sweep. */
export const SWEEP_CALL_MS = 10_000
/** New scopes of one step. */
export const SCOPES_AT_ONCE = 200
/** Sessions of a scope from which on it is swept in pages of its own. */
export const LARGE_SCOPE = 20
/** Sessions of a page, and so of a transaction. */
export const SWEEP_PAGE = 4000
/** Sessions that end in the transaction of a consumer. The sweep ends the others. */
export const ENDED_AT_ONCE = 500

/** Milliseconds for a call in the name of a router or its client. */
export const FIND_SESSION_MS = 10_000

// Circuits
/** Milliseconds for all routers of a path. Above the 5 s that the last one gives the host. */
export const OPEN_ROUTE_MS = 10_000
/** Dials of one router under way: a slow host holds each for seconds. */
export const MAX_DIALS = 256
/** Milliseconds for all routers of a new path: no host is asked. */
export const MOVE_ROUTE_MS = 5000
/** Milliseconds before a failed move is repeated. */
export const MOVE_PAUSE_MS = 500
/** Circuits that move together. */
export const MOVE_PAGE = 100
/** Pages of circuits that move at a time, and that wait. */
export const MOVE_QUEUE = { name: 'circuit-moves', running: 4, waiting: 10_000 }
/** Seconds after which the claim of a move ends. Above MOVE_ROUTE_MS and MOVE_PAUSE_MS together, for each try. */
export const MOVING_SECONDS = 20
/** Milliseconds between two runs of the maintenance. */
export const MAINTAIN_MS = 15_000
/** Milliseconds between two runs of its rarer steps. */
export const TIDY_MS = 60_000
/** Milliseconds after which circuits leave an offline router. Routers reconnect within seconds, or within a minute when all do at once. */
export const OFFLINE_MS = 60_000
/** Milliseconds after which circuits leave a failed link of an offline router, which has probably died. Below OFFLINE_MS. */
export const FAILED_MS = 10_000
/** Seconds after which a connected router has received what was sent. */
export const RECEIVED_SECONDS = 60
/** Seconds for which unroutes of an offline router are stored. After that it is assumed to have restarted. */
export const UNROUTES_KEPT_SECONDS = 30 * 24 * 3600
/** Seconds between two verifications of a circuit. Finds ends that were never reported. */
export const VERIFY_LIVE_SECONDS = 15 * 60
/** The same for circuits of a replica that has ended: routers report their ends to it. */
export const VERIFY_DEAD_SECONDS = 60
/** Circuits of one verification. */
export const VERIFIED_AT_ONCE = 200
/** Milliseconds for a router to answer a verification. */
export const INSPECT_CIRCUITS_MS = 5000
/** Circuits of one request to a router, which reads nothing else meanwhile. */
export const CIRCUITS_PER_REQUEST = 20
/** Seconds after which both ends of a new circuit exist. Above OPEN_ROUTE_MS. */
export const SETTLED_SECONDS = 30
/** Characters of the inspection of a circuit. Real ones have some thousand. */
export const LONGEST_INSPECTION = 256 * 1024
/** Milliseconds in which routers of clients close circuits of ended sessions themselves. An unroute that overtakes this leaves the other end open for 30 s. */
export const CLOSING_MS = 400
/** Circuits that end in one statement. */
export const END_PAGE = 500
/** Circuits of one report. Routers report the others again. */
export const MOST_REPORTED_CIRCUITS = 10_000
/** Characters of a list of circuits in a fault. */
export const LONGEST_ID_LIST = 256 * 1024
/** Circuits of one statement about reports. */
export const REPORT_PAGE = 500
/** Unroutes of one page for a router that connects. */
export const UNROUTES = 500

// Links
/** Rows of one notification. Must stay below the limit of the bus, 1 MiB. */
export const LINKS_PER_NOTIFICATION = 1000
/** Milliseconds between two comparisons of memory with the table without the bus. */
export const LINK_CHECK_MS = 2000
/** With the bus, one comparison in so many is made. */
export const CHECKS_WITH_BUS = 5
/** Comparisons after which deletions are forgotten: 60 s. Above the delay of any notification. */
export const FORGET_CHECKS = 30
/** Reports of routers in one statement. */
export const REPORTS_PER_STATEMENT = 50
/** Rows of one statement. They are applied to memory in one turn. */
export const LINKS_PER_STATEMENT = 2000
/** Milliseconds between two searches for links of offline routers. */
export const STALE_LINKS_MS = 5000
/** Milliseconds for which links outlive the connection of their source. */
export const LINK_GRACE_MS = 15_000
/** Links that circuits leave at a time. */
export const LEAVES_AT_A_TIME = 50
/** Links of one statement about metrics. */
export const MEASURED_AT_A_TIME = 250
/** Milliseconds before a report is stored again while the database is unavailable. */
export const REPORT_PAUSES = { firstMs: 100, longestMs: 2000 }
/** Links of one router, and links of its reports that wait without blocking its other messages. */
export const MOST_LINKS = 4096
/** Milliseconds within which a router that connects reports all its links. */
export const CONFIRM_LINKS_MS = 2000
/** Links of a report that are stored together. */
export const LINK_PAGE = 250
/** Milliseconds above which a reported latency is not plausible. */
export const MOST_LATENCY_MS = 600_000
/** Milliseconds in which changes of routers share a message. */
export const PEERS_GATHER_MS = 25
/** Milliseconds after which changed latencies take effect on paths. */
export const LATENCIES_MS = 1000
/** Routers whose paths are in memory, each with an entry for every other router. */
export const MOST_TREES = 1000

// Terminators
/** Terminators of one instance that a dial considers, the cheapest first. */
export const MAX_CANDIDATES = 1000
/** Milliseconds that an unknown service is waited for. */
export const FIND_SERVICE_MS = 2000
/** Changes of terminators whose events wait for a statement. */
export const MAX_PENDING_EVENTS = 10_000
/** Terminators of one transaction that quiesces. */
export const QUIESCE_PAGE = 500
/** Milliseconds between two writes of dynamic costs. Other replicas see costs that are as old. */
export const FLUSH_COSTS_MS = 5000
/** Milliseconds between two credits of failure costs, and two counts of circuits. */
export const CREDIT_MS = 60_000
/** Terminators of one message of validation. */
export const VALIDATION_PAGE = 500
/** Milliseconds after which a router must know a new terminator. */
export const VALIDATION_DELAY_MS = 5000
/** New terminators that wait for validation. Others are validated when their router connects. */
export const MAX_WAITING_VALIDATIONS = 100_000
/** Orphaned terminators of one transaction. */
export const ORPHAN_PAGE = 500
/** Milliseconds between two searches for orphaned terminators. */
export const ORPHAN_SWEEP_MS = 60_000
/** Minutes for which ended terminators are stored. Above a transaction, and a dial that may have selected one before. */
export const ENDED_TERMINATORS_KEPT_MINUTES = 10
/** Characters of the id and the instance of a terminator. */
export const MAX_TERMINATOR_ID_LENGTH = 200
/** Bytes of peer data and secret of a terminator. Its row must fit a message. */
export const MAX_PEER_DATA_BYTES = 64 * 1024
/** Terminators of one transaction that removes. */
export const REMOVAL_PAGE = 500
/** Milliseconds that a write of a terminator waits for the copy of its service. */
export const TERMINATOR_SERVICE_MS = 2000

// Routers that are identities
/** Seconds before the end of its API session at which a router requests another one. */
export const REFRESH_MARGIN_SECONDS = 10
/** Bytes of the token with which a router polls its services. Ours have 32. */
export const MAX_TOKEN_BYTES = 50
/** Milliseconds for identity to open the API session of a router. */
export const ROUTER_SESSION_MS = 10_000
/** Milliseconds within which a new API session may not have arrived with the changes of identity. */
export const NEW_SESSION_MS = 10_000
