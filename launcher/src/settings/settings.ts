import { networkInterfaces } from 'node:os'
import { join, resolve } from 'node:path'
import { providedKeySettings, tokenKeySettings, trustDomainSetting } from '@overlay/pki/settings'
import { readSettings, setting, splitAddress, type Values } from '@overlay/process/settings'
import {
  consoleSetting,
  ctrlAddressSetting,
  databaseTlsSetting,
  natsTlsSetting,
  processSettings,
} from '@overlay/process/shared-settings'
import { withTlsDirectory } from '@overlay/store/postgres/migrate'
import { DEFAULT_UID } from '../system/account.js'
import type { LogLimits } from '../system/log-file.js'
import { projectRoot } from '../system/project-root.js'
import { checkEnvironment } from './check-environment.js'

export const launcherSettings = {
  home: setting.text('OVERLAY_HOME', 'Directory of all state on this machine', { default: '.overlay' }),
  address: setting.address('OVERLAY_ADDRESS', 'Address of the APIs for clients', {
    default: 'localhost:1280',
  }),
  listen: setting
    .address(
      'OVERLAY_LISTEN',
      'Address at which the gateway listens; if not set, the port of `OVERLAY_ADDRESS`, on the loopback interface if its host is a loopback name, otherwise on all',
    )
    .optional(),
  ctrlAddress: ctrlAddressSetting,
  ctrlListen: setting
    .address(
      'OVERLAY_CTRL_LISTEN',
      'Address at which this replica listens for routers; if not set, none. The launcher uses the port of `OVERLAY_CTRL_ADDRESS`, as with `OVERLAY_LISTEN`',
    )
    .optional(),
  adminUsername: setting.text(
    'OVERLAY_ADMIN_USERNAME',
    'User name of the first administrator; read at the first start only',
    {
      default: 'admin',
    },
  ),
  adminPassword: setting
    .secret(
      'OVERLAY_ADMIN_PASSWORD',
      'Password of the first administrator; generated if not set; read at the first start only',
      { min: 5 },
    )
    .optional(),
  uid: setting.number(
    'OVERLAY_UID',
    'User and group id of the processes if root starts the product; Postgres gets the next one. 0: they remain root',
    { min: 1, max: 2 ** 32 - 3, orZero: true, default: DEFAULT_UID },
  ),
  databaseUrl: setting
    .url('DATABASE_URL', 'Database and its owner; if not set, the launcher starts a Postgres', [
      'postgres',
      'postgresql',
    ])
    .optional(),
  natsUrl: setting
    .url(
      'NATS_URL',
      'NATS server, or several of a cluster, separated by commas; if not set, the launcher runs a bus',
      ['nats', 'tls'],
      { isList: true },
    )
    .optional(),
  ...providedKeySettings,
  ...tokenKeySettings,
  trustDomain: trustDomainSetting,
  databaseTls: databaseTlsSetting,
  natsTls: natsTlsSetting,
  snapshots: setting
    .text(
      'OVERLAY_SNAPSHOTS',
      'Directory of [snapshots](operations.md#snapshots), the same for all services; with the launcher, by default in `OVERLAY_HOME`',
    )
    .optional(),
  console: consoleSetting,
  metricsAddress: setting
    .address(
      'OVERLAY_METRICS_ADDRESS',
      'Address of health and metrics of all processes; keep it private. If not set, `127.0.0.1:9962`, or a free port if it is taken',
    )
    .optional(),
  grpcHealthListen: processSettings.grpcHealthListen,
  logLevel: processSettings.logLevel,
  logFormat: processSettings.logFormat,
  logMib: setting.number('OVERLAY_LOG_MIB', 'Size at which a log file is rotated', {
    min: 1,
    max: 1 << 20,
    default: 16,
  }),
  logFiles: setting.number('OVERLAY_LOG_FILES', 'Log files to keep for each process', {
    min: 2,
    max: 1000,
    default: 5,
  }),
  silenceSeconds: setting.number(
    'OVERLAY_SILENCE_SECONDS',
    'Time without a response after which a process is restarted; 0: never',
    { min: 6, max: 86_400, orZero: true, default: 30 },
  ),
}

type Listens = 'listen' | 'ctrlListen'
export type LauncherSettings = Omit<Values<typeof launcherSettings>, Listens> &
  Readonly<Record<Listens, string>>

export function readLauncherSettings(env: NodeJS.ProcessEnv): LauncherSettings {
  const { inherited, problems: others } = checkEnvironment(launcherSettings, env)
  const problems = [...others, ...withoutServer(env)]
  // those of the processes are checked here, where all problems are reported together
  const values = readSettings<typeof launcherSettings>({ ...inherited, ...launcherSettings }, env, problems)
  const { databaseUrl, natsTls } = values
  const home = env.OVERLAY_HOME ? resolve(values.home) : join(projectRoot, values.home)
  return {
    ...values,
    databaseUrl: databaseUrl && withTlsDirectory(databaseUrl, values.databaseTls),
    natsTls: natsTls && resolve(natsTls),
    home,
    listen: values.listen ?? listenFor(values.address),
    ctrlListen: values.ctrlListen ?? listenFor(values.ctrlAddress),
  }
}

/** Directories for TLS are of servers that the launcher does not run. */
const withoutServer = (env: NodeJS.ProcessEnv): readonly string[] =>
  [['OVERLAY_DATABASE_TLS', 'DATABASE_URL'] as const, ['OVERLAY_NATS_TLS', 'NATS_URL'] as const].flatMap(
    ([directory, url]) =>
      env[directory] && !env[url]
        ? [`${directory} is for an external server: set ${url}, too, or unset ${directory}`]
        : [],
  )

/** Variables of the environment that have no effect. */
export const environmentWarnings = (env: NodeJS.ProcessEnv): readonly string[] =>
  checkEnvironment(launcherSettings, env).warnings

export const logLimits = ({
  logMib,
  logFiles,
}: Pick<LauncherSettings, 'logMib' | 'logFiles'>): LogLimits => ({
  maxBytes: logMib * 1024 * 1024,
  files: logFiles,
})

function listenFor(address: string): string {
  const { host, port } = splitAddress(address)
  if (isLoopbackName(host)) return `${host === '::1' ? '[::1]' : '127.0.0.1'}:${port}`
  const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
    list?.some(({ family }) => family === 'IPv6'),
  )
  return `${hasIpv6 ? '[::]' : '0.0.0.0'}:${port}`
}

/** Whether only programs on this machine reach the host. */
export const isLoopbackName = (host: string): boolean =>
  host === '::1' || /^(localhost|.*\.localhost|127\.[\d.]+)$/i.test(host)
