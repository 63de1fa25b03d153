import type { NetworkStatus } from './status.js'

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
