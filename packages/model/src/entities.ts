import type { Entity } from './kernel/types.js'
import * as definitions from './kinds.js'

/** Every kind, by the path segment of its collection. */
export const kinds: ReadonlyMap<string, Entity> = new Map(
  Object.values<unknown>(definitions)
    .filter(isEntity)
    .map((entity) => [entity.kind, entity]),
)

/** Files of kinds export more than the definition. */
function isEntity(value: unknown): value is Entity {
  return typeof value === 'object' && value !== null && 'kind' in value && 'fields' in value
}
