import type { Semantic } from '@overlay/model'
import type { Check } from './posture/posture-check.js'
import type { PostureData } from './posture/posture-data.js'

export interface Identity {
  readonly id: string
  readonly attributes: readonly string[]
  readonly isAdmin: boolean
  /** Absent: the defaults. */
  readonly settings?: IdentitySettings | undefined
}

/** What routers know of an identity besides its name. Costs and precedences are those of its terminators. */
export interface IdentitySettings {
  /** Until an administrator enables it. A lock that lapses ends sessions, and no change says when it does. */
  readonly isDisabled: boolean
  readonly cost: number
  readonly precedence: string
  readonly serviceCosts: Readonly<Record<string, number>>
  readonly servicePrecedences: Readonly<Record<string, string>>
  /** JSON; empty: none. */
  readonly appData: string
}

/** Revisions are equal where what clients see of the entity is equal. */
export interface Service {
  readonly id: string
  readonly attributes: readonly string[]
  readonly configIds: readonly string[]
  readonly encryptionRequired: boolean
  readonly revision: string
}

export interface Router {
  readonly id: string
  readonly attributes: readonly string[]
}

export interface PostureCheck {
  readonly id: string
  readonly attributes: readonly string[]
  readonly revision: string
  readonly check: Check
}

export interface IdentityPosture {
  /** Of the identity. */
  readonly id: string
  readonly data: PostureData
  /** The time of the last reported lapse of a second factor; 0: none is reported. */
  readonly lapsedAtMs: number
}

export interface Config {
  readonly id: string
  readonly typeId: string
  readonly revision: string
  /** JSON. */
  readonly data: string
}

export interface ConfigType {
  readonly id: string
  readonly name: string
}

/** One identity's own config for a service, in place of the service's config of that type or beside it. */
export interface Override {
  readonly id: string
  readonly identityId: string
  readonly serviceId: string
  readonly configId: string
}

export type AccessType = 'Dial' | 'Bind'

export interface ServicePolicy {
  readonly id: string
  readonly type: AccessType
  readonly semantic: Semantic
  readonly identityRoles: readonly string[]
  readonly serviceRoles: readonly string[]
  readonly postureCheckRoles: readonly string[]
}

/** Links identities, or services, with edge routers. */
export interface RouterPolicy {
  readonly id: string
  readonly semantic: Semantic
  readonly roles: readonly string[]
  readonly edgeRouterRoles: readonly string[]
}

/** The rows that the engine keeps, by kind. */
export interface Rows {
  readonly identities: Identity
  readonly services: Service
  readonly 'edge-routers': Router
  readonly 'posture-checks': PostureCheck
  readonly 'posture-data': IdentityPosture
  readonly configs: Config
  readonly 'config-types': ConfigType
  readonly 'service-configs': Override
  readonly 'service-policies': ServicePolicy
  readonly 'edge-router-policies': RouterPolicy
  readonly 'service-edge-router-policies': RouterPolicy
}

export type EngineKind = keyof Rows
