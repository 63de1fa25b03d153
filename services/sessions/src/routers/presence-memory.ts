import { NO_FEATURES, type RouterFeatures } from '../domain/router-features.js'
import type { PresenceRow, ReplicaPresence, ReplicaRow } from '../store/presence.js'
import type { Presence, PresenceListener, RouterPresence } from './router-presence.js'

/** A change of the rows of a replica that leads to this version. */
interface PresenceChange {
  readonly id: string
  readonly incarnation: string
  readonly version: number
  readonly saved?: readonly PresenceRow[]
  /** Ids of routers. The member keeps its name: replicas of 0.1.0 read it. */
  readonly gone?: readonly string[]
}

export interface PresenceMemory extends RouterPresence {
  put(replicaId: string, row: PresenceRow): void
  remove(replicaId: string, routerId: string): void
  /** False: changes are missing, and the rows of the replica must be read. */
  apply(change: PresenceChange): boolean
  /** Replaces the rows of a replica, unless newer ones are here. */
  load(replica: ReplicaPresence): void
  drop(replicaId: string): void
  /** Drops the replicas that are not live, if `drops`. Returns those whose rows must be read. */
  compare(live: readonly ReplicaRow[], drops: boolean): string[]
}

interface Replica {
  readonly incarnation: string
  readonly version: number
  readonly routerIds: Set<string>
}

const presenceOf = (replicaId: string, row: PresenceRow): Presence => ({
  routerId: row.routerId,
  replicaId,
  connectedAt: new Date(row.connectedAt),
  features: { ...NO_FEATURES, ...row.features }, // replicas of 0.1.0 report none
  linkListeners: Buffer.from(row.linkListeners, 'base64'),
  version: row.versionInfo.version,
  hostname: row.hostname,
  supportedProtocols: inOrderOfJsonb(row.supportedProtocols),
  syncStatus: row.syncStatus,
})

/** As Postgres orders members: by length, then by bytes. Answers from memory and from the table are equal. */
const inOrderOfJsonb = (object: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(object).sort(([a], [b]) => {
      const [left, right] = [Buffer.from(a), Buffer.from(b)]
      return left.length - right.length || left.compare(right)
    }),
  )

/** `ownId`: the replica whose rows only `put` and `remove` change. */
export function openPresenceMemory(ownId: string | undefined): PresenceMemory {
  const routers = new Map<string, readonly Presence[]>() // newest first
  const features = new Map<string, RouterFeatures>() // also of routers that are offline
  const replicas = new Map<string, Replica>()
  const former = new Set<string>() // replicas of 0.1.0, which report no features
  const listeners = new Set<PresenceListener>()

  /** Replaces the connection of a router to a replica. */
  function write(replicaId: string, routerId: string, next: Presence | undefined): void {
    const before = routers.get(routerId) ?? []
    const others = before.filter((presence) => presence.replicaId !== replicaId)
    const after = next
      ? [...others, next].sort((a, b) => b.connectedAt.getTime() - a.connectedAt.getTime())
      : others
    if (after[0]) features.set(routerId, after[0].features)
    if (after.length > 0) routers.set(routerId, after)
    else routers.delete(routerId)
    const [was, is] = [before[0], after[0]]
    const isSame = was && is ? was.linkListeners.equals(is.linkListeners) : was === is
    if (!isSame) for (const { routerChanged } of listeners) routerChanged?.(routerId)
    if (after.length < before.length) for (const { connectionEnded } of listeners) connectionEnded?.(routerId)
  }

  function put(replicaId: string, row: PresenceRow): void {
    replicas.get(replicaId)?.routerIds.add(row.routerId)
    if (Object.keys(row.features ?? {}).length === 0) former.add(replicaId)
    write(replicaId, row.routerId, presenceOf(replicaId, row))
  }

  function remove(replicaId: string, routerId: string): void {
    replicas.get(replicaId)?.routerIds.delete(routerId)
    write(replicaId, routerId, undefined)
  }

  function drop(replicaId: string): void {
    const replica = replicas.get(replicaId)
    if (!replica) return
    replicas.delete(replicaId)
    former.delete(replicaId)
    for (const routerId of replica.routerIds) write(replicaId, routerId, undefined)
    for (const { replicaEnded } of listeners) replicaEnded?.(replicaId)
  }

  return {
    isOnline: (routerId) => routers.has(routerId),
    of: (routerId) => routers.get(routerId) ?? [],
    lastFeatures: (routerId) => features.get(routerId),
    hasFormerReplicas: () => former.size > 0,
    *online() {
      for (const [newest] of routers.values()) if (newest) yield newest
    },
    replicas: () => new Set(replicas.keys()),
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    put,
    remove,

    apply({ id, incarnation, version, saved, gone }) {
      const replica = replicas.get(id)
      if (replica?.incarnation !== incarnation || !saved || replica.version !== version - 1) {
        return replica?.incarnation === incarnation && replica.version >= version
      }
      replicas.set(id, { ...replica, version })
      for (const row of saved) put(id, row)
      for (const routerId of gone ?? []) remove(id, routerId)
      return true
    },

    load({ id, incarnation, version, rows }) {
      const before = replicas.get(id)
      const isSame = before?.incarnation === incarnation
      if (isSame && before.version > version) return
      if (!isSame) former.delete(id)
      const loaded = new Set(rows.map(({ routerId }) => routerId))
      const routerIds = before?.routerIds ?? new Set<string>()
      replicas.set(id, { incarnation, version, routerIds })
      for (const row of rows) put(id, row)
      for (const routerId of routerIds) if (!loaded.has(routerId)) remove(id, routerId)
      if (before && !isSame) for (const { replicaEnded } of listeners) replicaEnded?.(id)
    },

    drop,

    compare(live, drops) {
      const ids = new Set(live.map(({ id }) => id))
      if (drops) for (const id of replicas.keys()) if (id !== ownId && !ids.has(id)) drop(id)
      const isStale = ({ id, incarnation, version }: ReplicaRow): boolean => {
        const replica = replicas.get(id)
        return replica?.incarnation !== incarnation || replica.version < version
      }
      return live.filter((row) => row.id !== ownId && isStale(row)).map(({ id }) => id)
    },
  }
}
