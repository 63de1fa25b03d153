import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** A pool of database connections, as `pg` counts them. */
interface Pool {
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
}

/** Read when metrics are requested. */
export const pools = new Set<Pool>()

/** All metrics of this process, which is one service. */
export const registry = new Registry()
collectDefaultMetrics({ register: registry })

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const registers = [registry]

/** Named and explained in docs/telemetry.md. Labels are bounded: never an id. */
export const metrics = {
  httpRequest: new Histogram({
    name: 'overlay_http_request_seconds',
    help: 'Requests to the APIs, by operation and HTTP status',
    labelNames: ['api', 'operation', 'status'],
    buckets: seconds,
    registers,
  }),
  connections: new Gauge({
    name: 'overlay_connections',
    help: 'Open connections of clients, including those in their TLS handshake',
    registers,
  }),
  connectionsRefused: new Counter({
    name: 'overlay_connections_refused_total',
    help: 'Connections refused before their TLS handshake, by limit (total, source) or for a bad PROXY header (header)',
    labelNames: ['reason'],
    registers,
  }),
  rpcCall: new Histogram({
    name: 'overlay_rpc_call_seconds',
    help: 'Calls answered by this process, by method and fault code (OK: none)',
    labelNames: ['method', 'code'],
    buckets: seconds,
    registers,
  }),
  poolConnections: new Gauge({
    name: 'overlay_pool_connections',
    help: 'Database connections: busy, idle, and callers waiting for one',
    labelNames: ['state'],
    registers,
    collect() {
      const sum = (count: (pool: Pool) => number): number =>
        [...pools].reduce((n, pool) => n + count(pool), 0)
      this.set(
        { state: 'busy' },
        sum(({ totalCount, idleCount }) => totalCount - idleCount),
      )
      this.set(
        { state: 'idle' },
        sum(({ idleCount }) => idleCount),
      )
      this.set(
        { state: 'waiting' },
        sum(({ waitingCount }) => waitingCount),
      )
    },
  }),
  databaseRepeated: new Counter({
    name: 'overlay_database_repeated_total',
    help: 'Transactions repeated after a deadlock or a serialization failure',
    labelNames: ['schema'],
    registers,
  }),
  queueTasks: new Gauge({
    name: 'overlay_queue_tasks',
    help: 'Tasks of a bounded queue: running and waiting',
    labelNames: ['queue', 'state'],
    registers,
  }),
  queueRefused: new Counter({
    name: 'overlay_queue_refused_total',
    help: 'Tasks refused because a bounded queue was full',
    labelNames: ['queue'],
    registers,
  }),
  streamPosition: new Gauge({
    name: 'overlay_stream_position',
    help: 'Number of the last change of its own schema that this process has read',
    labelNames: ['schema'],
    registers,
  }),
  followPosition: new Gauge({
    name: 'overlay_follow_position',
    help: 'Number of the last change of another schema that this process has applied',
    labelNames: ['schema'],
    registers,
  }),
  followHeard: new Gauge({
    name: 'overlay_follow_heard_timestamp_seconds',
    help: 'Time of the last message from the owner of another schema',
    labelNames: ['schema'],
    registers,
  }),
  followLag: new Histogram({
    name: 'overlay_follow_lag_seconds',
    help: 'Time from the commit of a change until this process has applied it',
    labelNames: ['schema'],
    buckets: seconds,
    registers,
  }),
  revocationPending: new Gauge({
    name: 'overlay_revocation_pending_seconds',
    help: 'Age of the oldest revocation whose sessions are not all checked; 0: none is pending',
    registers,
  }),
  followPoisonous: new Counter({
    name: 'overlay_follow_poisonous_total',
    help: 'Changes that could not be applied as received: the row was loaded separately (reloaded), or cannot be read (unknown)',
    labelNames: ['schema', 'kind', 'outcome'],
    registers,
  }),
  waitExpired: new Counter({
    name: 'overlay_follow_wait_expired_total',
    help: 'Requests whose wait for changes of another schema timed out',
    labelNames: ['schema'],
    registers,
  }),
  busConnected: new Gauge({
    name: 'overlay_bus_connected',
    help: '1 while the bus is connected',
    registers,
  }),
  busDropped: new Counter({
    name: 'overlay_bus_dropped_total',
    help: 'Messages not published because the bus was not connected',
    registers,
  }),
  loginRefused: new Counter({
    name: 'overlay_login_refused_total',
    help: 'Refused logins, by method and reason',
    labelNames: ['method', 'reason'],
    registers,
  }),
  certificateExpiry: new Gauge({
    name: 'overlay_certificate_expiry_timestamp_seconds',
    help: 'Expiry of the active certificate of a role (root, signing, server)',
    labelNames: ['role'],
    registers,
  }),
  cacheRequests: new Counter({
    name: 'overlay_cache_requests_total',
    help: 'Look-ups in a cache, by result (hit, miss)',
    labelNames: ['cache', 'result'],
    registers,
  }),
  cacheBytes: new Gauge({
    name: 'overlay_cache_bytes',
    help: 'Size of the entries of a cache',
    labelNames: ['cache'],
    registers,
  }),
}

/** For `serve` of @overlay/rpc. */
export function observeCall(method: string, code: string, took: number): void {
  metrics.rpcCall.observe({ method, code }, took)
}
