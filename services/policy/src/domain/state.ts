import { type Bitset, emptySet } from './bitset.js'
import type { Multimap } from './multimap.js'
import { openPopulation, type Population } from './population.js'
import type { PostureData } from './posture/posture-data.js'
import { openRelation, type Relation } from './relation.js'
import { openRoleIndex, type RoleIndex } from './role-index.js'
import type { Config, IdentitySettings, Override, PostureCheck, Service } from './rows.js'
import { noteFlips, noteMembers, noteRouters, noteScopes, openTouches, type Touches } from './touched.js'

/** All that the engine has in memory. Only mutators.ts changes it. */
export interface State {
  readonly identities: Population
  readonly services: Population
  readonly routers: Population
  readonly checks: Population
  /** Service policies, by what they grant. */
  readonly dial: Relation
  readonly bind: Relation
  /** The posture checks that service policies ask for. */
  readonly required: RoleIndex
  readonly identityRouters: Relation
  readonly serviceRouters: Relation
  readonly admins: Bitset
  /** Of the few identities that have any. */
  readonly settings: Map<string, IdentitySettings>
  /** Ids of the identities that have a cost or precedence of their own for a service. */
  readonly serviceSettings: Multimap<string, string>
  readonly contents: Map<string, Pick<Service, 'revision' | 'configIds' | 'encryptionRequired'>>
  /** Caches what a list shows of a service, as text. */
  readonly serviceTexts: Map<string, string>
  readonly checkContents: Map<string, Pick<PostureCheck, 'revision' | 'check'>>
  /** By identity. */
  readonly postureData: Map<string, PostureData>
  /** When the last lapse of a second factor that is reported happened, by identity. */
  readonly lapsedAtMs: Map<string, number>
  readonly configs: Map<string, Omit<Config, 'id'>>
  readonly typeNames: Map<string, string>
  readonly configServices: Multimap<string, string> // ids of the services that name a config
  readonly overrides: Map<string, Override>
  readonly identityOverrides: Multimap<string, Override>
  readonly configOverrides: Multimap<string, Override>
  readonly serviceOverrides: Multimap<string, Override>
  readonly touches: Touches
}

export function emptyState(): State {
  const identities = openPopulation()
  const services = openPopulation()
  const routers = openPopulation()
  const checks = openPopulation()
  const touches = openTouches()
  const granting = {
    left: noteMembers(touches, identities),
    right: noteFlips(services, () => touches.now.services),
  }
  const identityRouters = openRelation(identities, routers, {
    left: noteScopes(touches, identities),
    right: noteRouters(touches, routers, identities, (policyId) => identityRouters.left.membersOf(policyId)),
  })
  return {
    identities,
    services,
    routers,
    checks,
    dial: openRelation(identities, services, granting),
    bind: openRelation(identities, services, granting),
    required: openRoleIndex(
      checks,
      noteFlips(checks, () => touches.now.checks),
    ),
    identityRouters,
    serviceRouters: openRelation(services, routers, {
      left: noteFlips(services, () => touches.now.scopeServices),
      right: noteFlips(routers, () => touches.now.serviceRouters),
    }),
    admins: emptySet(),
    settings: new Map(),
    serviceSettings: new Map(),
    contents: new Map(),
    serviceTexts: new Map(),
    checkContents: new Map(),
    postureData: new Map(),
    lapsedAtMs: new Map(),
    configs: new Map(),
    typeNames: new Map(),
    configServices: new Map(),
    overrides: new Map(),
    identityOverrides: new Map(),
    configOverrides: new Map(),
    serviceOverrides: new Map(),
    touches,
  }
}
