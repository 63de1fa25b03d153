import { FEW_TOUCHED, TOUCHED_CHUNK_BYTES, TOUCHED_ENTRY_BYTES } from '../limits.js'
import { addAll, type Bitset, distinction, emptySet, forEach, has, isEmpty, sizeOf } from './bitset.js'
import type { Population } from './population.js'
import type { RoleListener } from './role-index.js'

/**
 * How a row has changed; flags. `linked`: the row is as before, and other rows refer to it. `withheld`: before or now, it is a
 * check that routers do not get.
 */
export const touch = { written: 1, created: 2, removed: 4, linked: 8, withheld: 16 } as const

const touchedKinds = [
  'identities',
  'services',
  'posture-checks',
  'configs',
  'config-types',
  'service-policies',
  'edge-routers',
] as const
export type TouchedKind = (typeof touchedKinds)[number]

export const isTouchedKind = (kind: string): kind is TouchedKind =>
  (touchedKinds as readonly string[]).includes(kind)

/**
 * Few identities by id, many by number. A number may be that of another identity by now, which does no harm where what is
 * touched is compared with what is.
 */
export interface TouchedIdentities {
  readonly ids: Set<string>
  many: Bitset | undefined
}

/** By policy, then by entity: whether the policy selected it before. */
export type Flips = Map<string, Map<string, boolean>>

/** Identities that an edge router policy selects, and its routers. */
export interface TouchedScope {
  readonly identities: TouchedIdentities
  /** Routers that it selects, or selected. */
  readonly routers: Set<string>
  /** What it selected when one of these came or went. */
  readonly ofRouters: TouchedIdentities
}

/**
 * What changes have touched of what routers know: keys, not values. What is exact says what was before, because routers
 * count services and checks of policies: one that is added twice is not lost when it is removed once.
 */
export interface Touched {
  readonly rows: { readonly [K in TouchedKind]: Map<string, number> }
  /** Identities that a service policy selects, or selected. */
  readonly members: Map<string, TouchedIdentities>
  /** Of service policies; exact. */
  readonly services: Flips
  readonly checks: Flips
  /** By edge router policy. */
  readonly scopes: Map<string, TouchedScope>
  /** Of service edge router policies; exact. */
  readonly scopeServices: Flips
  readonly serviceRouters: Flips
}

/** Collects what the next changes touch. */
export interface Touches {
  readonly now: Touched
  /** What was touched since the last call. Undefined: nothing. */
  take(): Touched | undefined
  /** Forgets it. */
  drop(): void
  row(kind: TouchedKind, id: string, how: number): void
}

export function openTouches(): Touches {
  let now = emptyTouched()
  return {
    get now() {
      return now
    },
    take() {
      if (isUntouched(now)) return undefined
      const taken = now
      now = emptyTouched()
      return taken
    },
    drop() {
      const { rows, ...maps } = now
      for (const kind of touchedKinds) rows[kind].clear()
      for (const map of Object.values(maps)) map.clear()
    },
    row: (kind, id, how) => touchRow(now, kind, id, how),
  }
}

export const emptyTouched = (): Touched => ({
  rows: {
    identities: new Map(),
    services: new Map(),
    'posture-checks': new Map(),
    configs: new Map(),
    'config-types': new Map(),
    'service-policies': new Map(),
    'edge-routers': new Map(),
  },
  members: new Map(),
  services: new Map(),
  checks: new Map(),
  scopes: new Map(),
  scopeServices: new Map(),
  serviceRouters: new Map(),
})

const isUntouched = ({ rows, ...maps }: Touched): boolean =>
  touchedKinds.every((kind) => rows[kind].size === 0) && Object.values(maps).every(({ size }) => size === 0)

function touchRow({ rows }: Touched, kind: TouchedKind, id: string, how: number): void {
  const ofKind = rows[kind]
  ofKind.set(id, (ofKind.get(id) ?? 0) | how)
}

const emptyIdentities = (): TouchedIdentities => ({ ids: new Set(), many: undefined })

const identitiesAt = (map: Map<string, TouchedIdentities>, policyId: string): TouchedIdentities =>
  at(map, policyId, emptyIdentities)

const scopeAt = ({ scopes }: Touched, policyId: string): TouchedScope =>
  at(scopes, policyId, () => ({
    identities: emptyIdentities(),
    routers: new Set<string>(),
    ofRouters: emptyIdentities(),
  }))

function at<T>(map: Map<string, T>, key: string, make: () => T): T {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}

function addIdentities(set: TouchedIdentities, population: Population, numbers: Bitset): void {
  if (isEmpty(numbers)) return
  if (sizeOf(numbers) <= FEW_TOUCHED) {
    forEach(numbers, (number) => set.ids.add(population.idOf(number)))
    return
  }
  set.many ??= emptySet()
  addAll(set.many, numbers)
}

/** Notes which identities a policy selects, or no longer does. */
const noteIdentities = (
  population: Population,
  setOf: (policyId: string) => TouchedIdentities,
): RoleListener => ({
  flipped: (policyId, number) => void setOf(policyId).ids.add(population.idOf(number)),
  replaced: (policyId, before, after) =>
    addIdentities(setOf(policyId), population, distinction(before, after)),
})

/** Notes which entities a policy selects, or no longer does, and which it selected before. */
export function noteFlips(population: Population, flips: () => Flips): RoleListener {
  const flipped = (policyId: string, number: number, wasSelected: boolean): void => {
    const ofPolicy = at(flips(), policyId, () => new Map<string, boolean>())
    const id = population.idOf(number)
    if (!ofPolicy.has(id)) ofPolicy.set(id, wasSelected)
  }
  return {
    flipped,
    replaced: (policyId, before, after) =>
      forEach(distinction(before, after), (number) => flipped(policyId, number, has(before, number))),
  }
}

/** Notes routers that come to an edge router policy or go, with all identities that it selects. */
export function noteRouters(
  touches: Touches,
  routers: Population,
  identities: Population,
  selectedBy: (policyId: string) => Bitset,
): RoleListener {
  const moved = (policyId: string, numbers: readonly number[]): void => {
    const scope = scopeAt(touches.now, policyId)
    for (const number of numbers) scope.routers.add(routers.idOf(number))
    addIdentities(scope.ofRouters, identities, selectedBy(policyId))
  }
  return {
    flipped: (policyId, number) => moved(policyId, [number]),
    replaced(policyId, before, after) {
      const numbers: number[] = []
      forEach(distinction(before, after), (number) => numbers.push(number))
      if (numbers.length > 0) moved(policyId, numbers)
    },
  }
}

export const noteMembers = (touches: Touches, identities: Population): RoleListener =>
  noteIdentities(identities, (policyId) => identitiesAt(touches.now.members, policyId))

export const noteScopes = (touches: Touches, identities: Population): RoleListener =>
  noteIdentities(identities, (policyId) => scopeAt(touches.now, policyId).identities)

/** What any of these have touched, in their order. */
export function uniteTouched(all: Iterable<Touched>): Touched {
  const result = emptyTouched()
  for (const touched of all) addTouched(result, touched)
  return result
}

/** Adds what was touched later. */
export function addTouched(result: Touched, touched: Touched): void {
  for (const kind of touchedKinds) for (const [id, how] of touched.rows[kind]) touchRow(result, kind, id, how)
  for (const [id, set] of touched.members) uniteIdentities(identitiesAt(result.members, id), set)
  for (const [id, { identities, routers, ofRouters }] of touched.scopes) {
    const scope = scopeAt(result, id)
    uniteIdentities(scope.identities, identities)
    uniteIdentities(scope.ofRouters, ofRouters)
    for (const router of routers) scope.routers.add(router)
  }
  for (const key of ['services', 'checks', 'scopeServices', 'serviceRouters'] as const)
    for (const [policyId, flips] of touched[key]) {
      const ofPolicy = at(result[key], policyId, () => new Map<string, boolean>())
      for (const [id, was] of flips) if (!ofPolicy.has(id)) ofPolicy.set(id, was)
    }
}

function uniteIdentities(into: TouchedIdentities, { ids, many }: TouchedIdentities): void {
  for (const id of ids) into.ids.add(id)
  if (!many) return
  into.many ??= emptySet()
  addAll(into.many, many)
}

/** About the memory of it. */
export function touchedBytes({ rows, members, scopes, ...flips }: Touched): number {
  const ofIdentities = ({ ids, many }: TouchedIdentities): number =>
    TOUCHED_ENTRY_BYTES +
    ids.size * TOUCHED_ENTRY_BYTES +
    (many?.chunks.filter(Boolean).length ?? 0) * TOUCHED_CHUNK_BYTES
  let bytes = 1000
  for (const kind of touchedKinds) bytes += rows[kind].size * TOUCHED_ENTRY_BYTES
  for (const set of members.values()) bytes += ofIdentities(set)
  for (const { identities, routers, ofRouters } of scopes.values())
    bytes += ofIdentities(identities) + ofIdentities(ofRouters) + routers.size * TOUCHED_ENTRY_BYTES
  for (const map of Object.values(flips))
    for (const ofPolicy of map.values()) bytes += (1 + ofPolicy.size) * TOUCHED_ENTRY_BYTES
  return bytes
}
