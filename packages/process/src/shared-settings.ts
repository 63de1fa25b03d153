import type { Service } from '@overlay/model'
import { type Setting, setting } from './settings.js'
import { tracingSettings } from './tracing-settings.js'

export const natsTlsSetting = setting
  .text(
    'OVERLAY_NATS_TLS',
    'Directory with the same files for [NATS](operations.md#external-nats); TLS is then required',
  )
  .optional()

export const databaseTlsSetting = setting
  .text(
    'OVERLAY_DATABASE_TLS',
    'Directory with [certificates for Postgres](operations.md#tls-to-postgres): `ca.crt`, and `tls.crt` with `tls.key` if the server requires one',
  )
  .optional()

/** The settings of all processes. */
export const processSettings = {
  opsListen: setting.address('OVERLAY_OPS_LISTEN', 'Address of health checks and metrics; keep it private'),
  grpcHealthListen: setting
    .address(
      'OVERLAY_GRPC_HEALTH_LISTEN',
      'Address of the [gRPC health service](operations.md#health-and-metrics) in plain text; keep it private',
    )
    .optional(),
  tls: setting.text(
    'OVERLAY_TLS',
    'Directory with the certificate of the process: `tls.crt`, with the name of its service as DNS name and for both sides of connections, `tls.key` and `ca.crt`. Read again when they change',
  ),
  logLevel: setting.oneOf(
    'OVERLAY_LOG_LEVEL',
    'Lowest level that is logged',
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace'],
    { default: 'info' },
  ),
  logFormat: setting.oneOf('OVERLAY_LOG_FORMAT', 'JSON lines, or text for reading', ['json', 'text'], {
    default: 'json',
  }),
  ...tracingSettings,
}

/** Of processes to which clients or routers connect. */
export const connectionSettings = {
  maxConnections: setting.number(
    'OVERLAY_MAX_CONNECTIONS',
    'Maximum of open connections of clients to one gateway, or of routers to one replica of sessions; lowered by the limit of open files',
    { min: 1, default: 20_000 },
  ),
  maxConnectionsPerSource: setting.number(
    'OVERLAY_MAX_CONNECTIONS_PER_SOURCE',
    'The same for one IPv4 address or IPv6 /64 network',
    { min: 1, default: 5000 },
  ),
  proxyProtocolFrom: setting
    .networks(
      'OVERLAY_PROXY_PROTOCOL_FROM',
      'Addresses and networks (`10.0.0.0/8`) of balancers that send the PROXY protocol, separated by commas. List only those that always send it; through others, clients can claim any address',
    )
    .optional(),
}

/** Further settings of all processes with a schema. */
export const serviceSettings = {
  ...processSettings,
  auditDays: setting.number('OVERLAY_AUDIT_DAYS', 'Days to keep audit rows; 0: for ever', {
    min: 7,
    max: 36_500,
    orZero: true,
    default: 90,
  }),
  databaseUrl: setting.url('DATABASE_URL', 'Database, with the role of the process', [
    'postgres',
    'postgresql',
  ]),
  databaseTls: databaseTlsSetting,
  natsUrl: setting.url(
    'NATS_URL',
    'NATS server for notifications between replicas, or several of a cluster, separated by commas',
    ['nats', 'tls'],
    { isList: true },
  ),
  natsTls: natsTlsSetting,
  rpcListen: setting.endpoint(
    'OVERLAY_RPC_LISTEN',
    'Address for calls from other processes: `host:port`, or `unix:/path` on one machine',
  ),
  snapshots: setting
    .text(
      'OVERLAY_SNAPSHOTS',
      'Directory of database snapshots, the same for all services. Without it, snapshots are refused',
    )
    .optional(),
}

export const keySecretSetting = setting.secret(
  'OVERLAY_KEY_SECRET',
  'Encrypts the private keys of pki, or the second factors of identity, in the database: different values. Data cannot be recovered without it',
  { min: 32 },
)

/** Of the tokens of OpenID Connect. identity issues them; pki keeps a key until its last token has expired. */
export const tokenSettings = {
  accessTokenMinutes: setting.number(
    'OVERLAY_ACCESS_TOKEN_MINUTES',
    'Lifetime of access tokens and id tokens',
    {
      min: 1,
      max: 1440,
      default: 30,
    },
  ),
  refreshTokenMinutes: setting.number(
    'OVERLAY_REFRESH_TOKEN_MINUTES',
    'Lifetime of refresh tokens. pki must know a longer one before identity does',
    { min: 5, max: 525_600, default: 1440 },
  ),
}

export const addressSetting = setting.address(
  'OVERLAY_ADDRESS',
  'Address of the APIs for clients, as host:port',
  { default: 'localhost:1280' },
)

export const ctrlAddressSetting = setting.address(
  'OVERLAY_CTRL_ADDRESS',
  'Address of the control channel for routers',
  { default: 'localhost:6262' },
)

export const consoleSetting = setting
  .text('OVERLAY_CONSOLE', 'Directory of a built [web console](operations.md#web-console), served at `/zac/`')
  .optional()

/** The addresses of the replicas of another service. */
export const peersSetting = (service: Service): Setting<string> =>
  setting.endpoints(
    `OVERLAY_${service.toUpperCase()}_PEERS`,
    `Addresses of all replicas of ${service}, separated by commas, or \`dns:host:port\``,
  )
