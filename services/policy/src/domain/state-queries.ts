import type { Semantic } from '@overlay/model'
import { type Bitset, emptySet, has, intersection, union } from './bitset.js'
import type { Relation } from './relation.js'
import type { AccessType } from './rows.js'
import type { State } from './state.js'

/** The reader of a list. An admin sees every service; policies say which of them it may use. */
export interface Viewer {
  readonly identityId: string
  readonly isAdmin: boolean
}

export interface Linking {
  readonly policyId: string
  readonly type: AccessType
}

const types: readonly AccessType[] = ['Dial', 'Bind']
const relationOf = ({ dial, bind }: State, type: AccessType): Relation => (type === 'Dial' ? dial : bind)

export function isAdmin({ identities, admins }: State, identityId: string): boolean {
  const number = identities.numberOf(identityId)
  return number !== undefined && has(admins, number)
}

export function reachOf(state: State, identityId: string, type: AccessType): Bitset {
  const number = state.identities.numberOf(identityId)
  return number === undefined ? emptySet() : relationOf(state, type).reach(number)
}

/** The services in the viewer's list. */
function visibleTo(state: State, { identityId, isAdmin }: Viewer): Bitset {
  if (isAdmin) return state.services.present
  return union(reachOf(state, identityId, 'Dial'), reachOf(state, identityId, 'Bind'))
}

export const visibleIds = (state: State, viewer: Viewer): string[] =>
  state.services.idsOf(visibleTo(state, viewer)).sort()

export function mayUse(state: State, identityId: string, serviceId: string, type: AccessType): boolean {
  return pair(state, identityId, serviceId, relationOf(state, type).linked) ?? false
}

export function maySee(state: State, { identityId, isAdmin }: Viewer, serviceId: string): boolean {
  if (isAdmin) return state.services.numberOf(serviceId) !== undefined
  return types.some((type) => mayUse(state, identityId, serviceId, type))
}

/** wire: `permissions` lists Bind before Dial. */
export const permissionsOf = (state: State, identityId: string, serviceId: string): AccessType[] =>
  (['Bind', 'Dial'] as const).filter((type) => mayUse(state, identityId, serviceId, type))

/** The policies through which an identity may use a service. */
export function linkingPolicies(state: State, identityId: string, serviceId: string): Linking[] {
  return types.flatMap((type) => {
    const linking = pair(state, identityId, serviceId, relationOf(state, type).linking) ?? []
    return linking.map((policyId) => ({ policyId, type }))
  })
}

/** The ids of those of one type. */
export const grantingPolicies = (
  state: State,
  identityId: string,
  serviceId: string,
  type: AccessType,
): readonly string[] => pair(state, identityId, serviceId, relationOf(state, type).linking) ?? []

export const requiredCheckIds = ({ checks, required }: State, policyId: string): string[] =>
  checks.idsOf(required.membersOf(policyId)).sort()

export function routersOfIdentity({ identities, identityRouters }: State, id: string): Bitset {
  const number = identities.numberOf(id)
  return number === undefined ? emptySet() : identityRouters.reach(number)
}

export function routersOfService({ services, serviceRouters }: State, id: string): Bitset {
  const number = services.numberOf(id)
  return number === undefined ? emptySet() : serviceRouters.reach(number)
}

/** Sets of routers, each once, and the index of the set of each identity, in their order. */
export interface RouterSets {
  readonly sets: readonly string[][]
  readonly setOf: readonly number[]
}

/** The routers that edge router policies grant these identities. */
export function routersOfIdentities(state: State, ids: readonly string[]): RouterSets {
  const { identities, identityRouters, routers } = state
  const sets: string[][] = []
  const known = new Map<string | undefined, number>() // by the policies that select an identity, besides those for all
  const setOf = ids.map((id) => {
    const number = identities.numberOf(id)
    const policies = number === undefined ? undefined : identityRouters.left.selecting(number)
    const key = policies
      ?.map(({ policyId }) => policyId)
      .sort()
      .join()
    const index = known.get(key) ?? sets.push(routers.idsOf(routersOfIdentity(state, id)).sort()) - 1
    known.set(key, index)
    return index
  })
  return { sets, setOf }
}

/** Routers that policies permit to carry this service for this identity, online or not. */
export const commonRouters = (state: State, identityId: string, serviceId: string): string[] =>
  state.routers
    .idsOf(intersection(routersOfIdentity(state, identityId), routersOfService(state, serviceId)))
    .sort()

function pair<T>(
  { identities, services }: State,
  identityId: string,
  serviceId: string,
  ask: (identity: number, service: number) => T,
): T | undefined {
  const identity = identities.numberOf(identityId)
  const service = services.numberOf(serviceId)
  return identity === undefined || service === undefined ? undefined : ask(identity, service)
}

/** The entities with which a policy links an entity, as role lists that the owner of their kind resolves. */
export interface FarRoles {
  readonly policyId: string
  readonly roles: readonly string[]
  readonly semantic: Semantic
}

/** The policies of one relation that select the entity on the side of `near`. */
export function policiesOf(relation: Relation, near: 'left' | 'right', id: string): FarRoles[] {
  const side = relation[near]
  const far = relation[near === 'left' ? 'right' : 'left']
  const number = side.population.numberOf(id)
  if (number === undefined) return []
  return [...side.open, ...side.selecting(number)].map(({ policyId, semantic }) => ({
    policyId,
    roles: far.get(policyId)?.list ?? [],
    semantic,
  }))
}
