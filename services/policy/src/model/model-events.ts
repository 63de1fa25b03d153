import {
  ModelAction,
  type ModelEvent,
  type ModelIdentity,
  ModelPolicyMember,
  ModelPolicyType,
  TerminatorPrecedence,
} from '@overlay/channel'
import { type Bitset, has, numbersIn } from '../domain/bitset.js'
import { isForRouters } from '../domain/posture/mfa-check.js'
import type { EngineKind } from '../domain/rows.js'
import type { State } from '../domain/state.js'
import { LINKS_PER_EVENT } from '../limits.js'
import { modelCheckOf } from './posture-checks.js'

/** What models are built from. */
export interface ModelSource {
  readonly state: State
  /** The names of a kind's rows, by id. */
  namesOf(kind: EngineKind): ReadonlyMap<string, string>
}

type Content = Omit<ModelEvent, 'action' | 'isSynthetic'>

const { CREATE, UPDATE, DELETE } = ModelAction

export const created = (content: Content): ModelEvent => ({ action: CREATE, isSynthetic: false, ...content })
export const updated = (content: Content): ModelEvent => ({ action: UPDATE, isSynthetic: false, ...content })

const nameOf = ({ namesOf }: ModelSource, kind: EngineKind, id: string): string => namesOf(kind).get(id) ?? ''

/** Null where it does not exist. */
export function configTypeOf({ state }: ModelSource, id: string): Content | null {
  const name = state.typeNames.get(id)
  return name === undefined ? null : { configType: { id, name, target: '' } }
}

export function configOf(source: ModelSource, id: string): Content | null {
  const config = source.state.configs.get(id)
  if (!config || !source.state.typeNames.has(config.typeId)) return null
  const { typeId, data } = config
  return { config: { id, typeId, name: nameOf(source, 'configs', id), dataJson: data } }
}

export const isConfig = ({ state }: ModelSource, id: string): boolean => {
  const config = state.configs.get(id)
  return config !== undefined && state.typeNames.has(config.typeId)
}

/** @param isSent whether the router has the config */
export function serviceOf(source: ModelSource, id: string, isSent: (config: string) => boolean): Content {
  const { configIds = [], encryptionRequired = false } = source.state.contents.get(id) ?? {}
  return {
    service: {
      id,
      name: nameOf(source, 'services', id),
      encryptionRequired,
      configs: configIds.filter(isSent),
    },
  }
}

/** The checks of these that routers get. */
export const checksForRouters = ({ checkContents }: ModelSource['state'], ids: readonly string[]): string[] =>
  ids.filter((id) => isForRouters(checkContents.get(id)?.check))

export const checkOf = (source: ModelSource, id: string): Content => ({
  postureCheck: modelCheckOf(
    id,
    nameOf(source, 'posture-checks', id),
    source.state.checkContents.get(id)?.check,
  ),
})

export const policyOf = (source: ModelSource, id: string): Content => ({
  servicePolicy: {
    id,
    name: nameOf(source, 'service-policies', id),
    policyType: source.state.dial.left.get(id) ? ModelPolicyType.DIAL : ModelPolicyType.BIND,
  },
})

const precedences: Readonly<Record<string, TerminatorPrecedence>> = {
  required: TerminatorPrecedence.REQUIRED,
  failed: TerminatorPrecedence.FAILED,
}
const precedenceOf = (word: string): TerminatorPrecedence => precedences[word] ?? TerminatorPrecedence.DEFAULT

const noBytes = Buffer.alloc(0)

/**
 * @param isInScope whether the router may know of the service
 * @param isSent whether the router has the config
 */
export function identityOf(
  source: ModelSource,
  id: string,
  isInScope: (service: string) => boolean,
  isSent: (config: string) => boolean,
): Content {
  const { state } = source
  const settings = state.settings.get(id)
  const inScope = <T, U>(values: Readonly<Record<string, T>>, convert: (value: T) => U): Map<string, U> =>
    new Map(
      Object.entries(values).flatMap(([service, value]) =>
        isInScope(service) ? [[service, convert(value)]] : [],
      ),
    )
  const identity: ModelIdentity = {
    id,
    name: nameOf(source, 'identities', id),
    defaultHostingPrecedence: precedenceOf(settings?.precedence ?? ''),
    defaultHostingCost: settings?.cost ?? 0,
    serviceHostingPrecedences: settings ? inScope(settings.servicePrecedences, precedenceOf) : new Map(),
    serviceHostingCosts: settings ? inScope(settings.serviceCosts, (cost) => cost) : new Map(),
    appDataJson: settings?.appData ? Buffer.from(settings.appData) : noBytes,
    serviceConfigs: new Map(),
    disabled: settings?.isDisabled ?? false,
  }
  for (const { serviceId, configId } of state.identityOverrides.get(id) ?? []) {
    const typeId = state.configs.get(configId)?.typeId
    if (typeId === undefined || !isInScope(serviceId) || !isSent(configId)) continue
    const own = identity.serviceConfigs.get(serviceId) ?? { configs: new Map() }
    own.configs.set(typeId, configId)
    identity.serviceConfigs.set(serviceId, own)
  }
  return { identity }
}

export const deletedIdentity = (id: string): ModelEvent => ({
  action: DELETE,
  isSynthetic: false,
  identity: {
    id,
    name: '',
    defaultHostingPrecedence: 0,
    defaultHostingCost: 0,
    serviceHostingPrecedences: new Map(),
    serviceHostingCosts: new Map(),
    appDataJson: noBytes,
    serviceConfigs: new Map(),
    disabled: false,
  },
})
const deleted = (content: Content): ModelEvent => ({ action: DELETE, isSynthetic: false, ...content })
export const deletedService = (id: string): ModelEvent =>
  deleted({ service: { id, name: '', encryptionRequired: false, configs: [] } })
export const deletedPolicy = (id: string): ModelEvent =>
  deleted({ servicePolicy: { id, name: '', policyType: ModelPolicyType.INVALID } })
export const deletedCheck = (id: string): ModelEvent =>
  deleted({ postureCheck: { id, name: '', typeId: '' } })
export const deletedConfig = (id: string): ModelEvent =>
  deleted({ config: { id, typeId: '', name: '', dataJson: '' } })
export const deletedConfigType = (id: string): ModelEvent =>
  deleted({ configType: { id, name: '', target: '' } })

/** Ids of these identities, as far as they still exist: `tracked` loses those that are removed meanwhile. */
export function* idsIn({ state }: ModelSource, numbers: Bitset, tracked: Bitset): Generator<string, void> {
  for (const number of numbersIn(numbers)) if (has(tracked, number)) yield state.identities.idOf(number)
}

type Member = 'SERVICE' | 'IDENTITY' | 'POSTURE_CHECK'

/** Adds members to a policy, or takes them away. */
export function* memberEvents(
  policyId: string,
  member: Member,
  ids: Iterable<string>,
  add: boolean,
): Generator<ModelEvent, void> {
  let batch: string[] = []
  const event = (): ModelEvent =>
    created({
      servicePolicyChange: {
        policyId,
        relatedEntityIds: batch,
        relatedEntityType: ModelPolicyMember[member],
        add,
      },
    })
  for (const id of ids) {
    batch.push(id)
    if (batch.length < LINKS_PER_EVENT) continue
    yield event()
    batch = []
  }
  if (batch.length > 0) yield event()
}
