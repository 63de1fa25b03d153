import { LATE_MS, MIN_DAYS_LEFT, RECENT_MS } from '../limits.js'
import { type NetworkStatus, nameOf, releaseOf } from './status.js'

/** What needs the attention of an operator. */
export interface Concern {
  /** `critical`: something does not work, or soon will not. */
  readonly level: 'critical' | 'warning'
  readonly text: string
}

/** The worst first. */
export function concernsOf(status: NetworkStatus): readonly Concern[] {
  const all = [unavailable, bus, expiring, late, releases, refusing, routers].flatMap((find) => find(status))
  return [
    ...all.filter(({ level }) => level === 'critical'),
    ...all.filter(({ level }) => level !== 'critical'),
  ]
}

const critical = (text: string): Concern => ({ level: 'critical', text })
const warning = (text: string): Concern => ({ level: 'warning', text })

const unavailable = ({ replicas }: NetworkStatus): Concern[] =>
  replicas.flatMap(({ service, address, problem }) =>
    problem === undefined ? [] : [critical(`${service} at ${address} ${problem}.`)],
  )

const bus = ({ replicas }: NetworkStatus): Concern[] =>
  replicas.flatMap(({ service, process }) =>
    process?.bus === 'unavailable'
      ? [warning(`${service} ${nameOf(process)} is not connected to the bus: changes reach it later.`)]
      : [],
  )

function expiring(status: NetworkStatus): Concern[] {
  return certificatesOf(status).flatMap((certificate) => {
    if (certificate.state === 'retired') return []
    const days = daysUntil(certificate.expiresAtMs, status.atMs)
    const least = MIN_DAYS_LEFT[isOfNetwork(certificate) ? 'network' : 'process']
    if (days >= least.warning) return []
    const text =
      days < 0
        ? `The certificate “${certificate.name}” has expired.`
        : `The certificate “${certificate.name}” expires in ${days === 1 ? '1 day' : `${days} days`}.`
    return [days < least.critical ? critical(text) : warning(text)]
  })
}

const late = ({ follows }: NetworkStatus): Concern[] =>
  follows.flatMap(({ replica: { service, process }, schema, lateMs }) =>
    process && lateMs > LATE_MS
      ? [
          warning(
            `${service} ${nameOf(process)} has missed changes of ${schema} for ${Math.round(lateMs / 1000)} s.`,
          ),
        ]
      : [],
  )

function releases({ replicas }: NetworkStatus): Concern[] {
  const all = new Set(replicas.flatMap(({ process }) => (process ? [releaseOf(process)] : [])))
  return all.size > 1 ? [warning(`Several releases run: ${[...all].sort().join(', ')}.`)] : []
}

const refusing = ({ replicas, atMs }: NetworkStatus): Concern[] =>
  replicas.flatMap(({ service, process }) =>
    (process?.queues ?? []).flatMap(({ name, refusedAtMs }) =>
      process && refusedAtMs !== undefined && atMs - refusedAtMs < RECENT_MS
        ? [warning(`The queue “${name}” of ${service} ${nameOf(process)} has been full within 10 minutes.`)]
        : [],
    ),
  )

function routers({ offlineRouters }: NetworkStatus): Concern[] {
  if (!offlineRouters || offlineRouters.total === 0) return []
  const { total, names } = offlineRouters
  const first = names.slice(0, 5).join(', ')
  return [
    warning(
      `${total === 1 ? '1 edge router is' : `${total} edge routers are`} offline: ${first}${total > 5 ? ', …' : ''}.`,
    ),
  ]
}

export interface NamedCertificate {
  readonly name: string
  /** `next`, `active` or `retired`; empty: a process presents it to its peers. */
  readonly state: string
  readonly expiresAtMs: number
}

const DAY_MS = 86_400_000

/** Rounded down; negative: it has expired. */
export const daysUntil = (timeMs: number, nowMs: number): number => Math.floor((timeMs - nowMs) / DAY_MS)

export const isOfNetwork = ({ state }: Pick<NamedCertificate, 'state'>): boolean => state !== ''

const peers: Readonly<Record<string, string>> = {
  process: 'other processes',
  database: 'the database',
  bus: 'the bus',
}

/** Once for all replicas of a service: the one that expires first. */
export function certificatesOf({ replicas }: Pick<NetworkStatus, 'replicas'>): readonly NamedCertificate[] {
  const byName = new Map<string, NamedCertificate>()
  for (const { service, process } of replicas)
    for (const { role, state, expiresAtMs } of process?.certificates ?? []) {
      const name = state === '' ? `${service}, for ${peers[role] ?? role}` : `${role}, ${state}`
      const other = byName.get(name)
      if (!other || expiresAtMs < other.expiresAtMs) byName.set(name, { name, state, expiresAtMs })
    }
  return [...byName.values()].sort((a, b) => a.expiresAtMs - b.expiresAtMs)
}
