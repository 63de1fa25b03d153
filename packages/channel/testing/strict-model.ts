import { createPublicKey, X509Certificate } from 'node:crypto'
import {
  type DataState,
  type DataStateChangeSet,
  ModelAction,
  type ModelConfig,
  type ModelEvent,
  type ModelIdentity,
  ModelKeyFormat,
  ModelPolicyMember,
  ModelPolicyType,
  type ModelPostureCheck,
  type ModelPublicKey,
  type ModelRevocation,
  type ModelService,
  type ModelServicePolicyChange,
} from '../src/index.js'
import { emptyContents, type ModelContents } from './model-contents.js'

/** What a router stores. */
export interface ModelState {
  /** 0: there was no full state yet. */
  readonly index: bigint
  readonly timeline: string
  readonly contents: ModelContents
}

/**
 * The model of a router. It takes what routers take, and reports whatever any line of routers loses, misunderstands or
 * dies of: routers themselves are silent about it.
 */
export interface StrictModel extends ModelState {
  /** Replaces everything. */
  replace(state: DataState): void
  /** `gap`: the set does not follow what the model has. `refused`: the model ignores it. */
  apply(set: DataStateChangeSet): 'applied' | 'gap' | 'refused'
}

/**
 * @param onViolation gets a text for each broken rule
 * @param stored of a router that starts again
 */
export function openStrictModel(
  onViolation: (violation: string) => void,
  stored: ModelState = { index: 0n, timeline: '', contents: emptyContents() },
): StrictModel {
  let { index, timeline, contents } = stored
  let rules = openRules(contents, onViolation)
  return {
    get index() {
      return index
    },
    get timeline() {
      return timeline
    },
    get contents() {
      return contents
    },
    replace(state) {
      if (state.endIndex === 0n) onViolation('a full state without an index')
      if (state.timelineId === '') onViolation('a full state without a timeline')
      if (state.timelineId === timeline && state.endIndex < index)
        onViolation(`a full state of index ${state.endIndex} after ${index}`)
      index = state.endIndex
      timeline = state.timelineId
      contents = emptyContents()
      rules = openRules(contents, onViolation)
      const seen = new Set<string>()
      for (const event of state.events) {
        const [kind, entity] = entityOf(event)
        const id = entity && `${kind} ${entity.id}`
        if (id && seen.has(id)) onViolation(`a full state with two of ${id}`)
        if (id) seen.add(id)
        if (event.action === ModelAction.DELETE) onViolation(`a full state that deletes ${kind}`)
        rules.take(event)
      }
      rules.end()
    },
    apply(set) {
      if (set.isSynthetic) {
        for (const event of set.changes) {
          if (!event.publicKey && !event.revocation)
            onViolation(`a synthetic change of a ${entityOf(event)[0]}`)
          rules.take(event)
        }
        return 'applied'
      }
      if (index === 0n) {
        onViolation(`change set ${set.index} before a full state`)
        return 'refused'
      }
      if (set.index <= index) {
        onViolation(`change set ${set.index} after ${index}`)
        return 'refused'
      }
      if (set.previousIndex !== index) {
        onViolation(`a gap: change set ${set.index} follows ${set.previousIndex}, and the model has ${index}`)
        return 'gap'
      }
      index = set.index
      for (const event of set.changes) rules.take(event)
      rules.end()
      return 'applied'
    },
  }
}

function openRules(contents: ModelContents, onViolation: (violation: string) => void) {
  const { identity: identities, service: services, config: configs, configType: configTypes } = contents
  const { 'posture-check': checks, 'service-policy': policies, 'public-keys': keys, revocations } = contents
  /** Members of deleted policies. Routers before 2.0 keep them, and a policy of the same id has them again. */
  const formerMembers = new Map<string, Set<string>>()
  const returned = new Set<string>()

  const requireKnown = (known: ReadonlyMap<string, unknown>, id: string, what: string): void => {
    if (!known.has(id)) onViolation(`${what} names ${id}, which the router does not have`)
  }

  /** Whether something else names what is deleted, which must be taken back first. */
  function refuseUse(isUsed: boolean, what: string): void {
    if (isUsed) onViolation(`${what} is deleted while it is in use`)
  }

  function takeConfig(config: ModelConfig): void {
    requireKnown(configTypes, config.typeId, `config ${config.id}`)
    checkJson(config.dataJson, `config ${config.id}`)
    configs.set(config.id, config)
  }

  function takeIdentity(identity: ModelIdentity): void {
    if (identity.appDataJson.length > 0) checkJson(String(identity.appDataJson), `identity ${identity.id}`)
    for (const [serviceId, own] of identity.serviceConfigs) {
      if (own.configs.size === 0)
        onViolation(`identity ${identity.id} has an empty override for ${serviceId}`)
      for (const [typeId, configId] of own.configs) {
        requireKnown(configs, configId, `identity ${identity.id}`)
        if (configs.get(configId)?.typeId !== typeId)
          onViolation(`identity ${identity.id} has config ${configId} under another type`)
      }
    }
    identities.set(identity.id, identity)
  }

  function takeService(service: ModelService): void {
    for (const id of service.configs) requireKnown(configs, id, `service ${service.id}`)
    services.set(service.id, service)
  }

  function takeCheck(check: ModelPostureCheck): void {
    const { mac, mfa, osList, process, processMulti, domains } = check
    const forms = {
      MAC: mac,
      MFA: mfa,
      OS: osList,
      PROCESS: process,
      PROCESS_MULTI: processMulti,
      DOMAIN: domains,
    }
    if (!forms[check.typeId as keyof typeof forms])
      onViolation(`posture check ${check.id} is no ${check.typeId}`)
    checks.set(check.id, check)
  }

  function takePolicy(id: string, event: ModelEvent): void {
    const policy = event.servicePolicy
    if (!policy) return
    const { DIAL, BIND } = ModelPolicyType
    if (policy.policyType !== DIAL && policy.policyType !== BIND) onViolation(`policy ${id} has no type`)
    const former = policies.get(id)
    if (!former && formerMembers.has(id)) returned.add(id)
    policies.set(
      id,
      former
        ? { ...former, policy }
        : { policy, services: new Set(), identities: new Set(), postureChecks: new Set() },
    )
  }

  function takeLinks({ policyId, relatedEntityIds, relatedEntityType, add }: ModelServicePolicyChange): void {
    const policy = policies.get(policyId)
    const name = ModelPolicyMember[relatedEntityType]?.toLowerCase()
    if (relatedEntityType === ModelPolicyMember.IDENTITY && !add)
      for (const id of relatedEntityIds) formerMembers.get(policyId)?.delete(id)
    if (!policy) {
      if (add) onViolation(`members of policy ${policyId}, which the router does not have`)
      return
    }
    for (const id of relatedEntityIds) {
      switch (relatedEntityType) {
        case ModelPolicyMember.IDENTITY:
          if (add) requireKnown(identities, id, `policy ${policyId}`)
          // routers lose it otherwise
          if (!add) policy.identities.delete(id)
          else if (identities.has(id)) policy.identities.add(id)
          break
        case ModelPolicyMember.SERVICE:
          if (add) requireKnown(services, id, `policy ${policyId}`)
          changeExactly(policy.services, id, add, `policy ${policyId}: ${name} ${id}`)
          break
        case ModelPolicyMember.POSTURE_CHECK:
          // the next access check of a router that does not know it is its end
          if (add) requireKnown(checks, id, `policy ${policyId}, of which the router dies,`)
          changeExactly(policy.postureChecks, id, add, `policy ${policyId}: ${name} ${id}`)
          break
        default:
          onViolation(`members of policy ${policyId} of no kind`)
      }
    }
  }

  /** Routers of 2.0 count the policies that grant a service, and those that require a check. */
  function changeExactly(members: Set<string>, id: string, add: boolean, what: string): void {
    if (members.has(id) === add) onViolation(`${what} is ${add ? 'added' : 'removed'} twice`)
    if (add) members.add(id)
    else members.delete(id)
  }

  function takeKey(key: ModelPublicKey): void {
    const former = keys.get(key.kid)
    if (former && !former.data.equals(key.data)) onViolation(`two public keys with the id ${key.kid}`)
    if (key.usages.length === 0) onViolation(`public key ${key.kid} has no usage`)
    try {
      if (key.format === ModelKeyFormat.CERTIFICATE) new X509Certificate(key.data)
      else createPublicKey({ key: key.data, format: 'der', type: 'spki' })
    } catch (err) {
      onViolation(`public key ${key.kid}: ${(err as Error).message}`)
    }
    keys.set(key.kid, key)
  }

  function takeRevocation(revocation: ModelRevocation): void {
    if (!['API_SESSION', 'IDENTITY', 'JTI'].includes(revocation.type))
      onViolation(`revocation ${revocation.id} has the type '${revocation.type}'`)
    if (!revocation.expiresAt) onViolation(`revocation ${revocation.id} does not expire`)
    revocations.set(revocation.id, revocation)
  }

  function takeDelete(kind: string, id: string): void {
    const what = `${kind} ${id}`
    const isMember = (list: 'services' | 'identities' | 'postureChecks'): boolean =>
      [...policies.values()].some((policy) => policy[list].has(id))
    switch (kind) {
      case 'config type':
        refuseUse(
          [...configs.values()].some(({ typeId }) => typeId === id),
          what,
        )
        configTypes.delete(id)
        break
      case 'config':
        refuseUse(
          [...services.values()].some((service) => service.configs.includes(id)) ||
            [...identities.values()].some(({ serviceConfigs }) =>
              [...serviceConfigs.values()].some((own) => [...own.configs.values()].includes(id)),
            ),
          what,
        )
        configs.delete(id)
        break
      case 'identity':
        refuseUse(isMember('identities'), what)
        for (const members of formerMembers.values()) members.delete(id)
        for (const policy of policies.values()) policy.identities.delete(id)
        identities.delete(id)
        break
      case 'service':
        refuseUse(isMember('services'), what)
        for (const policy of policies.values()) policy.services.delete(id)
        services.delete(id)
        break
      case 'posture check':
        refuseUse(isMember('postureChecks'), what)
        for (const policy of policies.values()) policy.postureChecks.delete(id)
        checks.delete(id)
        break
      case 'policy': {
        const former = policies.get(id)
        if (former && former.identities.size > 0)
          formerMembers.set(id, new Set([...(formerMembers.get(id) ?? []), ...former.identities]))
        policies.delete(id)
        break
      }
      case 'public key':
        keys.delete(id)
        break
      default:
        revocations.delete(id)
    }
  }

  function checkJson(json: string, what: string): void {
    try {
      JSON.parse(json)
    } catch {
      onViolation(`${what} has no JSON`)
    }
  }

  return {
    take(event: ModelEvent): void {
      if (event.router) return // routers before 2.1 do not know it
      if (event.servicePolicyChange) {
        takeLinks(event.servicePolicyChange)
        return
      }
      const [kind, entity] = entityOf(event)
      if (!entity?.id) onViolation(`a change of ${kind} without an id`)
      else if (event.action === ModelAction.DELETE) takeDelete(kind, entity.id)
      else if (event.configType) configTypes.set(entity.id, event.configType)
      else if (event.config) takeConfig(event.config)
      else if (event.identity) takeIdentity(event.identity)
      else if (event.service) takeService(event.service)
      else if (event.postureCheck) takeCheck(event.postureCheck)
      else if (event.publicKey) takeKey(event.publicKey)
      else if (event.revocation) takeRevocation(event.revocation)
      else takePolicy(entity.id, event)
    },
    /** A full state or change set is complete. */
    end(): void {
      for (const id of returned) {
        const { identities: members } = policies.get(id) ?? { identities: new Set() }
        const kept = [...(formerMembers.get(id) ?? [])].filter((member) => !members.has(member))
        if (kept.length > 0)
          onViolation(`policy ${id} has returned, and routers before 2.0 still apply it to ${kept}`)
        formerMembers.delete(id)
      }
      returned.clear()
    },
  }
}

/** What an event is about, with its id. */
function entityOf(event: ModelEvent): readonly [string, { readonly id: string } | undefined] {
  const { identity, service, servicePolicy, postureCheck, publicKey, revocation, configType, config } = event
  if (identity) return ['identity', identity]
  if (service) return ['service', service]
  if (servicePolicy) return ['policy', servicePolicy]
  if (postureCheck) return ['posture check', postureCheck]
  if (publicKey) return ['public key', { id: publicKey.kid }]
  if (revocation) return ['revocation', revocation]
  if (configType) return ['config type', configType]
  if (config) return ['config', config]
  if (event.servicePolicyChange) return ['members', undefined]
  return [event.router ? 'router' : 'nothing', event.router]
}
