import { type Entity, type Field, memberAt, type Tags } from '@overlay/model'
import { type AnyRow, type AnyValues, membersIn } from './row.js'
import { refuseLarge, tagsOf } from './sizes.js'

type Json = Readonly<Record<string, unknown>>

/** The body of a create or an update. */
export const bodyIn = (json: Uint8Array): Record<string, unknown> =>
  JSON.parse(Buffer.from(json).toString()) as Record<string, unknown>

/** The value in the form in which it is read back, so that checks see sets as sets. */
const normalized = (field: Field, value: unknown): unknown => field.load(field.store(value ?? field.fallback))

/** The gateway passes on the members that the API of the request may write. */
const writes = ({ write, fabricWrite = write }: Field, operation: 0 | 1): boolean =>
  write[operation] !== '-' || fabricWrite[operation] !== '-'

/** The fields that a create body sets. Absent members, and those that no create may set, get their fallback. */
export function createdFields(entity: Entity, json: Json): AnyValues {
  const members = Object.entries(entity.fields).map(([name, field]) => [
    name,
    normalized(field, writes(field, 0) ? memberAt(json, name) : undefined),
  ])
  return Object.fromEntries(members) as AnyValues
}

/** Fields and tags of a create body, unless they are too large. */
export function createdValues(entity: Entity, json: Json): { values: AnyValues; tags: Tags } {
  const values = createdFields(entity, json)
  refuseLarge(entity, values)
  return { values, tags: tagsOf(json.tags) }
}

/** The members of the body that the mask names. Maps and objects are replaced as a whole. */
export function changedValues(
  entity: Entity,
  json: Json,
  mask: ReadonlySet<string>,
): { values: Json; names: ReadonlySet<string> } {
  const changed = Object.entries(entity.fields).filter(([name, field]) => writes(field, 1) && mask.has(name))
  return {
    values: Object.fromEntries(
      changed.map(([name, field]) => [name, normalized(field, memberAt(json, name))]),
    ),
    names: new Set(changed.map(([name]) => name)),
  }
}

/** The row with these members changed. */
export function updatedValues(
  entity: Entity,
  before: AnyRow,
  json: Json,
  mask: ReadonlySet<string>,
): { values: AnyValues; tags: Tags; names: ReadonlySet<string> } {
  const { values: changed, names } = changedValues(entity, json, mask)
  const stored = membersIn(before)
  const members = Object.keys(entity.fields).map((name) => [
    name,
    names.has(name) ? changed[name] : stored[name],
  ])
  const values = Object.fromEntries(members) as AnyValues
  refuseLarge(entity, values, before)
  const tags = mask.has('tags') ? tagsOf(json.tags) : before.tags
  return { values, tags, names }
}
