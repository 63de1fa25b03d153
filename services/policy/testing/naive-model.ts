import { ModelPolicyType, TerminatorPrecedence } from '@overlay/channel'
import { emptyContents, type ModelContents } from '../../../packages/channel/testing/model-contents.js'
import { isForRouters } from '../src/domain/posture/mfa-check.js'
import { modelCheckOf } from '../src/model/posture-checks.js'
import { checksAsked, chosen, routersFor, routersForService, type World } from './naive-world.js'

const precedences: Readonly<Record<string, TerminatorPrecedence>> = {
  required: TerminatorPrecedence.REQUIRED,
  failed: TerminatorPrecedence.FAILED,
}
const precedenceOf = (word: string): TerminatorPrecedence => precedences[word] ?? TerminatorPrecedence.DEFAULT

/** What a router ought to know, computed from all rows. */
export function naiveModel(
  world: World,
  routerId: string,
  nameOf: (kind: string, id: string) => string,
): ModelContents {
  const model = emptyContents()
  const serves = (id: string): boolean => routersForService(world, id).includes(routerId)
  const identities = [...world.identities.values()].filter(({ id }) =>
    routersFor(world, id).includes(routerId),
  )
  const services = [...world.services.values()].filter(({ id }) => serves(id))
  const isConfig = (id: string): boolean => {
    const config = world.configs.get(id)
    return config !== undefined && world['config-types'].has(config.typeId)
  }
  for (const { id, name } of world['config-types'].values())
    model.configType.set(id, { id, name, target: '' })
  const addConfig = (id: string): void => {
    const config = world.configs.get(id)
    if (!config || !isConfig(id)) return
    model.config.set(id, { id, typeId: config.typeId, name: nameOf('configs', id), dataJson: config.data })
  }
  for (const { id, configIds, encryptionRequired } of services) {
    const configs = configIds.filter(isConfig)
    configs.forEach(addConfig)
    model.service.set(id, { id, name: nameOf('services', id), encryptionRequired, configs })
  }
  for (const { id, settings } of identities) {
    const ofServices = <T>(values: Readonly<Record<string, T>> | undefined): [string, T][] =>
      Object.entries(values ?? {}).filter(([service]) => serves(service))
    const overrides = [...world['service-configs'].values()].filter(
      (one) => one.identityId === id && serves(one.serviceId) && isConfig(one.configId),
    )
    for (const { configId } of overrides) addConfig(configId)
    const serviceConfigs = new Map<string, { configs: Map<string, string> }>()
    for (const { serviceId, configId } of overrides) {
      const typeId = world.configs.get(configId)?.typeId ?? ''
      serviceConfigs.set(serviceId, { configs: new Map([[typeId, configId]]) })
    }
    model.identity.set(id, {
      id,
      name: nameOf('identities', id),
      defaultHostingPrecedence: precedenceOf(settings?.precedence ?? ''),
      defaultHostingCost: settings?.cost ?? 0,
      serviceHostingPrecedences: new Map(
        ofServices(settings?.servicePrecedences).map(([service, word]) => [service, precedenceOf(word)]),
      ),
      serviceHostingCosts: new Map(ofServices(settings?.serviceCosts)),
      appDataJson: Buffer.from(settings?.appData ?? ''),
      serviceConfigs,
      disabled: settings?.isDisabled ?? false,
    })
  }
  for (const policy of world['service-policies'].values()) {
    const { id, type, semantic, identityRoles, serviceRoles } = policy
    const granted = chosen(serviceRoles, semantic, world.services).filter(serves)
    if (granted.length === 0) continue
    const checks = checksAsked(world, policy).filter((id) =>
      isForRouters(world['posture-checks'].get(id)?.check),
    )
    for (const check of checks) {
      const name = nameOf('posture-checks', check)
      model['posture-check'].set(check, modelCheckOf(check, name, world['posture-checks'].get(check)?.check))
    }
    const policyType = type === 'Dial' ? ModelPolicyType.DIAL : ModelPolicyType.BIND
    model['service-policy'].set(id, {
      policy: { id, name: nameOf('service-policies', id), policyType },
      services: new Set(granted),
      identities: new Set(
        chosen(identityRoles, semantic, world.identities).filter((one) => model.identity.has(one)),
      ),
      postureChecks: new Set(checks),
    })
  }
  return model
}
