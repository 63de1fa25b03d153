import type {
  DataStateDifference,
  ModelConfig,
  ModelConfigType,
  ModelIdentity,
  ModelPostureCheck,
  ModelPublicKey,
  ModelRevocation,
  ModelService,
  ModelServicePolicy,
} from '../src/index.js'

/** A policy with the ids of its members. */
export interface PolicyWithMembers {
  readonly policy: ModelServicePolicy
  readonly services: Set<string>
  readonly identities: Set<string>
  readonly postureChecks: Set<string>
}

/** What a router knows, by id. The names are those of its answers to a validation. */
export interface ModelContents {
  readonly configType: Map<string, ModelConfigType>
  readonly config: Map<string, ModelConfig>
  readonly identity: Map<string, ModelIdentity>
  readonly service: Map<string, ModelService>
  readonly 'posture-check': Map<string, ModelPostureCheck>
  readonly 'service-policy': Map<string, PolicyWithMembers>
  readonly 'public-keys': Map<string, ModelPublicKey>
  readonly revocations: Map<string, ModelRevocation>
}

export const emptyContents = (): ModelContents => ({
  configType: new Map(),
  config: new Map(),
  identity: new Map(),
  service: new Map(),
  'posture-check': new Map(),
  'service-policy': new Map(),
  'public-keys': new Map(),
  revocations: new Map(),
})

/** Entities of each kind. */
export const countsOf = (contents: ModelContents): Map<string, number> =>
  new Map(
    Object.entries(contents).map(([kind, entities]: [string, Map<string, unknown>]) => [kind, entities.size]),
  )

/** How the contents of a router differ from what they should be: `added` is what it has in excess. */
export function differences(expected: ModelContents, actual: ModelContents): DataStateDifference[] {
  return Object.entries(expected).flatMap(([entityType, entities]: [string, Map<string, unknown>]) => {
    const others: Map<string, unknown> = actual[entityType as keyof ModelContents]
    return [...new Set([...entities.keys(), ...others.keys()])].flatMap((entityId) => {
      const [one, other] = [textOf(entities.get(entityId)), textOf(others.get(entityId))]
      if (one === other) return []
      const diffType = one === undefined ? 'added' : other === undefined ? 'removed' : 'modified'
      return [{ entityType, entityId, diffType, detail: `${other} instead of ${one}` }]
    })
  })
}

/** Equal texts mean equal entities, whatever the order of their lists and maps. */
const textOf = (entity: unknown): string | undefined =>
  JSON.stringify(entity, (key, value: unknown) => {
    if (typeof value === 'bigint') return String(value)
    if (value instanceof Set) return [...value].sort()
    if (value instanceof Map) return [...value].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
    if ((key === 'configs' || key === 'usages') && Array.isArray(value)) return [...value].sort()
    return value
  })
