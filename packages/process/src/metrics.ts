import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { collectNodeMetrics } from './node-metrics.js'
import { isSlow, keepSlow } from './recent.js'

/** A pool of database connections, as `pg` counts them. */
interface Pool {
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
}

/** Read when metrics are requested. */
export const pools = new Set<Pool>()

/** A stream of changes of another schema. */
interface SchemaFollower {
  readonly schema: string
  /** Of the last change that it has applied. Undefined: nothing is loaded yet. */
  number(): number | undefined
  /** Since the last message of the owner. Infinity: there was none. */
  silentMs(): number
}

/** Read when the process is asked to describe itself. */
export const followers = new Set<SchemaFollower>()

/** Read the files of certificates again. Run when metrics are requested. */
export const certificateReads = new Set<() => void>()

/** The connections of this process to the bus. Read when metrics are requested. */
export const buses = new Set<{ connected(): boolean }>()

/** All metrics of this process, which runs one component of the product or all of them. */
export const registry = new Registry()
collectNodeMetrics(registry)

const followersBySchema = () => Map.groupBy(followers, ({ schema }) => schema)

/** The connections of all pools, and callers that wait for one. */
export function countConnections() {
  const sum = { busy: 0, idle: 0, waiting: 0 }
  for (const { totalCount, idleCount, waitingCount } of pools) {
    sum.busy += totalCount - idleCount
    sum.idle += idleCount
    sum.waiting += waitingCount
  }
  return sum
}

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const registers = [registry]

const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> =>
  new Counter({ name, help, labelNames, registers })
/** @param collect sets it when metrics are requested */
const gauge = <L extends string>(
  name: string,
  help: string,
  labelNames: readonly L[] = [],
  collect: (this: Gauge<L>) => void = () => undefined,
): Gauge<L> => new Gauge({ name, help, labelNames, registers, collect })
/** Has no value in processes that do not set it: 0 would be a time long ago, or a bus that is away. */
const gaugeIfSet = (name: string, help: string): Gauge => {
  const unset = gauge(name, help)
  unset.remove()
  return unset
}
const histogram = <L extends string>(
  name: string,
  help: string,
  labelNames: readonly L[] = [],
): Histogram<L> => new Histogram({ name, help, labelNames, buckets: seconds, registers })

/** Named and explained in docs/telemetry.md. Labels are bounded: never an id. */
export const metrics = {
  httpRequest: histogram(
    'overlay_http_request_seconds',
    'Requests to the APIs, by operation and HTTP status',
    ['api', 'operation', 'status'],
  ),
  connections: gauge(
    'overlay_connections',
    'Open connections of clients, including those in their TLS handshake',
  ),
  connectionsRefused: counter(
    'overlay_connections_refused_total',
    'Connections refused, by limit (total, source), or for a bad PROXY header (header), one from an unlisted address (proxy), plain HTTP (http), excessive certificates (certificates)',
    ['reason'],
  ),
  requestsHeld: counter(
    'overlay_requests_held_total',
    'Requests above the share of their source or session, by which of them and outcome (waited, refused)',
    ['by', 'outcome'],
  ),
  streams: gauge('overlay_streams', 'Open event streams of administrators'),
  rpcCall: histogram(
    'overlay_rpc_call_seconds',
    'Calls answered by this process, by method and fault code (OK: none)',
    ['method', 'code'],
  ),
  /** Without labels, so that it begins with 0 and the first one is an increase. */
  defects: counter('overlay_defects_total', 'Unexpected errors; the log has them at level error'),
  rpcRefused: counter(
    'overlay_rpc_refused_total',
    'Refused calls and connections (method: none) of other processes, by method and by the service that the certificate names (none: no valid one)',
    ['method', 'caller'],
  ),
  peerCertificateExpiry: gauge(
    'overlay_peer_certificate_expiry_timestamp_seconds',
    'Expiry of the certificate that this process presents to a peer (process, database, bus), or of its authorities if earlier',
    ['peer'],
    () => {
      for (const read of certificateReads) read()
    },
  ),
  peerCertificateRefused: counter(
    'overlay_peer_certificate_refused_total',
    'Unusable certificates found, by peer; the last valid one stays in use',
    ['peer'],
  ),
  poolConnections: gauge(
    'overlay_pool_connections',
    'Database connections: busy, idle, and callers waiting for one',
    ['state'],
    function () {
      for (const [state, count] of Object.entries(countConnections())) this.set({ state }, count)
    },
  ),
  databaseRepeated: counter(
    'overlay_database_repeated_total',
    'Transactions repeated after a deadlock or a serialization failure, and work whose connection the server has ended',
    ['schema'],
  ),
  queueTasks: gauge('overlay_queue_tasks', 'Tasks of a bounded queue: running and waiting', [
    'queue',
    'state',
  ]),
  queueRefused: counter('overlay_queue_refused_total', 'Tasks refused because a bounded queue was full', [
    'queue',
  ]),
  queueRefusedAt: gauge('overlay_queue_refused_timestamp_seconds', 'Time of the last refused task', [
    'queue',
  ]),
  databaseAnswered: gauge(
    'overlay_database_answered_timestamp_seconds',
    'Time of the last read of the change log of its own schema',
    ['schema'],
  ),
  changeLogPosition: gauge(
    'overlay_change_log_position',
    'Number of the last change of its own schema that this process has read',
    ['schema'],
  ),
  followPosition: gauge(
    'overlay_follow_position',
    'Number of the last change of another schema that this process has applied; of several followers, the lowest one',
    ['schema'],
    function () {
      this.reset()
      for (const [schema, each] of followersBySchema()) {
        const numbers = each.flatMap(({ number }) => number() ?? [])
        if (numbers.length > 0) this.set({ schema }, Math.min(...numbers))
      }
    },
  ),
  followHeard: gauge(
    'overlay_follow_heard_timestamp_seconds',
    'Time of the last message from the owner of another schema; of several followers, the earliest',
    ['schema'],
    function () {
      this.reset()
      for (const [schema, each] of followersBySchema()) {
        const silentMs = Math.max(...each.map(({ silentMs }) => silentMs()))
        this.set({ schema }, (performance.timeOrigin + Math.max(0, performance.now() - silentMs)) / 1000)
      }
    },
  ),
  followLag: histogram(
    'overlay_follow_lag_seconds',
    'Time from the commit of a change until this process has applied it',
    ['schema'],
  ),
  revocationPending: gauge(
    'overlay_revocation_pending_seconds',
    'Age of the oldest pending revocation; 0: none',
  ),
  followPoisonous: counter(
    'overlay_follow_poisonous_total',
    'Changes that could not be applied as received: the row was loaded (reloaded), or cannot be read (unknown)',
    ['schema', 'kind', 'outcome'],
  ),
  followLoadFailed: counter(
    'overlay_follow_load_failed_total',
    'Failed loads of all rows of a schema, by follower and cause (unavailable: the owner or the database; error)',
    ['schema', 'follower', 'cause'],
  ),
  waitExpired: counter(
    'overlay_follow_wait_expired_total',
    'Requests whose wait for changes of another schema timed out',
    ['schema'],
  ),
  readsRepeated: counter(
    'overlay_reads_repeated_total',
    'Reads of services repeated because the view of the client changed meanwhile',
  ),
  routerModelBuilds: counter(
    'overlay_router_model_builds_total',
    'Data models of routers that policy has built, or shared among routers that may know the same, by kind (full, changes) and origin (built, shared)',
    ['kind', 'origin'],
  ),
  routerModelEncoded: counter(
    'overlay_router_model_encoded_bytes_total',
    'Bytes of the data models that policy has built, by kind (full, changes)',
    ['kind'],
  ),
  routerModelJournal: gauge(
    'overlay_router_model_journal_bytes',
    'About the memory of what recent changes touched, from which data models of routers are brought up to date',
  ),
  pushLate: counter(
    'overlay_push_late_total',
    'Logins and new certificates answered before all routers had the credentials',
  ),
  busConnected: gauge('overlay_bus_connected', '1 while the bus is connected', [], function () {
    if (buses.size === 0) this.remove()
    else this.set([...buses].every(({ connected }) => connected()) ? 1 : 0)
  }),
  busDropped: counter(
    'overlay_bus_dropped_total',
    'Messages not published because the bus was not connected',
  ),
  loginRefused: counter(
    'overlay_login_refused_total',
    'Refused logins, codes (totp), and requests to the token endpoint (code, refresh, exchange, grant), by method and reason',
    ['method', 'reason'],
  ),
  guessesPaused: counter(
    'overlay_guesses_paused_total',
    'Pauses after wrong guesses, by kind of secret and scope (account-at-source, account, source)',
    ['kind', 'scope'],
  ),
  identitiesLocked: counter(
    'overlay_identities_locked_total',
    'Identities that their auth policy disabled after wrong passwords',
  ),
  keyFetches: counter(
    'overlay_signer_key_fetches_total',
    'Fetches of the keys of external JWT signers, by result (fetched, failed)',
    ['result'],
  ),
  routersConnected: gauge('overlay_routers_connected', 'Routers that are connected to this process'),
  routersRefused: counter(
    'overlay_routers_refused_total',
    'Connections of routers refused after their TLS handshake, by reason',
    ['reason'],
  ),
  routersDisconnected: counter(
    'overlay_routers_disconnected_total',
    'Connections of routers that have ended, by reason (closed, replaced, revoked, unresponsive, stalled, malformed, stopping)',
    ['reason'],
  ),
  routerCertificateExpiry: gaugeIfSet(
    'overlay_router_certificate_expiry_timestamp_seconds',
    'Earliest expiry of the client certificate of a router that is not disabled; +Inf without routers',
  ),
  routerMessages: counter(
    'overlay_router_messages_total',
    'Messages of routers, by type and result (ok, failed, malformed; dropped: not used; oversized: above the limits)',
    ['type', 'result'],
  ),
  routerMessagesLost: counter(
    'overlay_router_messages_lost_total',
    'Messages that did not reach their router: it is offline, or its replica does not answer',
  ),
  routerSubscriptions: gauge(
    'overlay_router_subscriptions',
    'Routers that have subscribed to the data model at this process',
  ),
  routerModelMessages: counter(
    'overlay_router_model_messages_total',
    'Messages of the data model to routers, by kind (full, changes, keys)',
    ['kind'],
  ),
  routerModelChecks: counter(
    'overlay_router_model_checks_total',
    'Comparisons of the data models of routers, by result (equal; different: replaced; failed)',
    ['result'],
  ),
  healthChecks: counter(
    'overlay_health_checks_total',
    'Health checks of hosted services that routers report, by result (passed, failed)',
    ['result'],
  ),
  certificateExpiry: gauge(
    'overlay_certificate_expiry_timestamp_seconds',
    'Expiry of the certificate of a key of the network, by role (root, signing, server) and state (next, active, retired: the earliest)',
    ['role', 'state'],
  ),
  keyRenewal: gauge(
    'overlay_key_renewal_timestamp_seconds',
    'Time at which a generated key (root, signing, token, session) is due for replacement',
    ['role'],
  ),
  accessTokenRefused: counter(
    'overlay_access_token_refused_total',
    'Refused access tokens, by reason (size, header, key, signature, claims, expired; session: it has ended)',
    ['reason'],
  ),
  providedKeyRefused: gauge(
    'overlay_provided_key_refused',
    '1 while the files of a provided key (signing, server, token) are unusable, and the last key stays',
    ['role'],
  ),
  tokenKeyRotation: gaugeIfSet(
    'overlay_token_key_rotation_timestamp_seconds',
    'Time at which the key that signs tokens is due for replacement',
  ),
  circuitOpen: histogram(
    'overlay_circuit_open_seconds',
    'Circuits set up for clients of routers, by outcome (ok, refused, failed)',
    ['outcome'],
  ),
  circuitEnded: counter(
    'overlay_circuit_ended_total',
    'Ended circuits, by reason (closed, idle, session, terminator, router, path, unknown, admin)',
    ['reason'],
  ),
  circuitMoved: counter(
    'overlay_circuit_moved_total',
    'Circuits that had to leave their path, by outcome (moved, ended)',
    ['outcome'],
  ),
  routerClaimRefused: counter(
    'overlay_router_claims_refused_total',
    'Refused claims of routers about the access of their clients, by reason (session, api-session, type, certificate, router, service)',
    ['reason'],
  ),
  routerMessagesForbidden: counter(
    'overlay_router_messages_forbidden_total',
    'Refused messages of routers about circuits, links, terminators or sessions of others, by subject',
    ['subject'],
  ),
  traceSpans: counter(
    'overlay_trace_spans_total',
    'Spans of traces, by result (sent, failed, dropped: too many waited)',
    ['result'],
  ),
  cacheRequests: counter('overlay_cache_requests_total', 'Look-ups in a cache, by result (hit, miss)', [
    'cache',
    'result',
  ]),
  cacheBytes: gauge('overlay_cache_bytes', 'Size of the entries of a cache', ['cache']),
}

/** The metrics of a launcher about its processes. They have a registry of their own: each product has a launcher. */
export function processMetrics() {
  const own = new Registry()
  return {
    registry: own,
    up: new Gauge({
      name: 'overlay_process_up',
      help: '1 if the process has answered with its metrics in time, otherwise 0',
      labelNames: ['process'],
      registers: [own],
    }),
    restarts: new Counter({
      name: 'overlay_process_restarts_total',
      help: 'Restarts of the process since the start of the launcher',
      labelNames: ['process'],
      registers: [own],
    }),
  }
}

/** The usual metrics of this Node process, without those of the product. */
export function nodeMetrics(): Registry {
  const own = new Registry()
  collectNodeMetrics(own)
  return own
}

type Peer = 'process' | 'database' | 'bus'

/** By peer and by what presents the certificate. */
const expiries = new Map<Peer, Map<string, number>>()

/**
 * A valid certificate. Of several for one peer, the one that expires first counts. The counter begins with 0, so that the
 * first refusal is an increase.
 */
export function noteCertificate(peer: Peer, holder: string, expiresAt: number): void {
  const ofPeer = expiries.get(peer) ?? new Map<string, number>()
  expiries.set(peer, ofPeer.set(holder, expiresAt))
  metrics.peerCertificateExpiry.set({ peer }, Math.min(...ofPeer.values()) / 1000)
  metrics.peerCertificateRefused.inc({ peer }, 0)
}

/** A task that is refused because its queue is full. */
export function noteFullQueue(queue: string): void {
  metrics.queueRefused.inc({ queue })
  metrics.queueRefusedAt.setToCurrentTime({ queue })
}

/** For `serve` of @overlay/rpc. */
export function observeCall(method: string, code: string, took: number, requestId?: string): void {
  metrics.rpcCall.observe({ method, code }, took)
  if (code === 'UNHANDLED') metrics.defects.inc()
  if (requestId !== undefined && isSlow(took))
    keepSlow(method.slice(method.lastIndexOf('.') + 1), code, took, requestId)
}
