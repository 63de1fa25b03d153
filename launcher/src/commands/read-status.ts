import { X509Certificate } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { caFile, secretsFile } from '../home/home-files.js'
import { runningLauncher } from '../home/installation.js'
import { lastBackup, type Saved } from '../home/last-backup.js'
import { type ProcessRecord, readStatusRecord, type StatusRecord } from '../home/status-record.js'
import { METRICS_MS } from '../limits.js'
import { askOps, isHealthy, problemsIn, readinessOf, worstState } from '../processes/health.js'
import { labelIn, samplesOf } from '../processes/prometheus-text.js'
import type { LauncherSettings } from '../settings/settings.js'
import { exists, ignoreMissing } from '../system/files.js'

/** The state of an installation. Times are in ISO 8601. */
export interface Status {
  /** `none`: there is no installation in the home. `unhealthy`: a process is not ready, or a component that a gateway follows is silent. */
  readonly state: 'none' | 'stopped' | 'starting' | 'unhealthy' | 'healthy'
  readonly home: string
  /** Of the last start. */
  readonly start?: Omit<StatusRecord, 'processes'>
  readonly processes: readonly ProcessStatus[]
  /** Of the connections of the processes: 'ok', or what is wrong. */
  readonly database?: string
  readonly bus?: string
  readonly routersConnected?: number
  readonly certificates: readonly Certificate[]
  /** Keys that need the operator, and why. Known while the product runs. */
  readonly keyConcerns?: readonly KeyConcern[]
  readonly lastSnapshot?: Saved
  readonly lastBackup?: Saved
}

export interface ProcessStatus extends Omit<ProcessRecord, 'ops'> {
  readonly ready: boolean
  readonly problems: readonly string[]
}

export interface Certificate {
  readonly role: string
  readonly expiresAt: string
}

export interface KeyConcern {
  readonly role: string
  readonly problem: 'expires within 30 days' | 'replacement overdue' | 'files of your own key refused'
}

const DAY_MS = 86_400_000

/** Reads files of the home. If the product runs, it asks the processes, too. */
export async function readStatus({
  home,
  snapshots,
}: Pick<LauncherSettings, 'home' | 'snapshots'>): Promise<Status> {
  const record = await readStatusRecord(home)
  const launcher = await runningLauncher(home)
  const snapshot = await newestSnapshot(record?.snapshots ?? snapshots ?? join(home, 'snapshots'))
  const backup = await lastBackup(home)
  const always = {
    home,
    ...(record && { start: withoutProcesses(record) }),
    ...(snapshot && { lastSnapshot: snapshot }),
    ...(backup && { lastBackup: backup }),
  }
  if (record && launcher === record.launcher && record.stoppedAt === undefined)
    return { ...(await readRunning(record)), ...always }
  const state =
    launcher !== undefined ? 'starting' : (await exists(join(home, secretsFile))) ? 'stopped' : 'none'
  return { state, processes: [], certificates: await authoritiesIn(join(home, caFile)), ...always }
}

async function readRunning({
  processes: records,
  metricsAddress,
}: StatusRecord): Promise<Omit<Status, 'home'>> {
  const [readiness, metrics] = await Promise.all([
    Promise.all(records.map(({ ops }) => readinessOf(ops))),
    Promise.all(records.map(async ({ ops }) => (await askOps(ops, '/metrics', METRICS_MS))?.body ?? '')),
  ])
  const processes = records.map(({ ops: _, ...record }, at) => {
    const its = readiness[at] ?? { ready: false, checks: {} }
    return { ...record, ready: its.ready, problems: problemsIn(its) }
  })
  const text = metrics.join('\n')
  const areHealthy = readiness.every(isHealthy)
  return {
    state: metricsAddress === undefined ? 'starting' : areHealthy ? 'healthy' : 'unhealthy',
    processes,
    database: worstState(readiness, 'database'),
    bus: worstState(readiness, 'bus'),
    routersConnected: samplesOf(text, 'overlay_routers_connected').reduce((sum, { value }) => sum + value, 0),
    certificates: certificatesIn(text),
    keyConcerns: keyConcernsIn(text, Date.now()),
  }
}

const roleIn = (labels: string): string => labelIn(labels, 'role')

/** Of the active keys: replicas report the same. */
function certificatesIn(metrics: string): readonly Certificate[] {
  const active = samplesOf(metrics, 'overlay_certificate_expiry_timestamp_seconds')
    .filter(({ labels }) => labels.includes('state="active"'))
    .map(({ labels, value }) => [roleIn(labels), value] as const)
  return [...new Map(active)].map(([role, value]) => ({
    role,
    expiresAt: new Date(value * 1000).toISOString(),
  }))
}

/** Exported for tests. `metrics`: of all processes. */
export function keyConcernsIn(metrics: string, now: number): readonly KeyConcern[] {
  const rolesWhere = (name: string, isConcern: (value: number) => boolean): readonly string[] => [
    ...new Set(
      samplesOf(metrics, name)
        .filter(({ value }) => isConcern(value))
        .map(({ labels }) => roleIn(labels)),
    ),
  ]
  const expiring = certificatesIn(metrics).filter(
    ({ expiresAt }) => Date.parse(expiresAt) - now < 30 * DAY_MS,
  )
  const overdue = rolesWhere(
    'overlay_key_renewal_timestamp_seconds',
    (time) => now - time * 1000 > 2 * DAY_MS,
  )
  const refused = rolesWhere('overlay_provided_key_refused', (value) => value > 0)
  return [
    ...expiring.map(({ role }) => ({ role, problem: 'expires within 30 days' }) as const),
    ...overdue.map((role) => ({ role, problem: 'replacement overdue' }) as const),
    ...refused.map((role) => ({ role, problem: 'files of your own key refused' }) as const),
  ]
}

function withoutProcesses({ processes: _, ...record }: StatusRecord): Omit<StatusRecord, 'processes'> {
  return record
}

/** The authorities that a stopped installation has given to clients. */
async function authoritiesIn(file: string): Promise<Certificate[]> {
  const text = (await readFile(file, 'utf8').catch(ignoreMissing)) ?? ''
  const pems = text.match(/-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs) ?? []
  return pems.map((pem) => {
    const { subject, issuer, validTo } = new X509Certificate(pem)
    return { role: subject === issuer ? 'root' : 'signing', expiresAt: new Date(validTo).toISOString() }
  })
}

async function newestSnapshot(directory: string): Promise<Saved | undefined> {
  const names = (await readdir(directory).catch(ignoreMissing)) ?? []
  const newest = names
    .filter((name) => /^\d{8}T\d{6}Z-[\da-f-]+$/.test(name))
    .sort()
    .at(-1)
  if (newest === undefined) return undefined
  const path = join(directory, newest)
  return { path, at: (await stat(path)).mtime.toISOString() }
}
