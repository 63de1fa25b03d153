import {
  bodySchemaOf,
  type Entity,
  memberAt,
  type Variants,
  variantsOf,
  type WriteOperation,
  writableMembers,
} from '@overlay/model'
import { variable } from '@overlay/model/schema'
import { Fault } from '@overlay/rpc'
import { jsonBytes } from '../http/body.js'
import type { BodySpec } from '../http/exchange.js'

export interface EntityBody {
  readonly json: Buffer
  /** The fields that a replace or patch writes, nested ones with dots. */
  readonly mask: string[]
}

/** The body of a create, replace or patch of one kind, from its definition. */
export const entityBody = (entity: Entity, operation: WriteOperation): BodySpec<EntityBody> =>
  entity.variants ? variantBody(entity, entity.variants, operation) : plainBody(entity, operation)

function plainBody(entity: Entity, operation: WriteOperation): BodySpec<EntityBody> {
  const writable = writableMembers(entity, operation)
  return {
    name: entity.published.body,
    required: true,
    schema: bodySchemaOf(entity, operation),
    read(checked, sent) {
      const json = jsonBytes(checked)
      if (operation === 'create') return { json, mask: [] }
      if (operation === 'replace') return { json, mask: [...writable] }
      const mask = writable.filter((name) => memberAt(checked, name) !== undefined)
      // differs: a patch that sets nothing is refused; wire: one with members that no kind has is not
      const rest = Object.entries(sent ?? {}).filter(([, value]) => value !== null)
      if (mask.length === 0 && rest.every(([name]) => isField(entity, name)))
        throw new Fault('COULD_NOT_VALIDATE', 'no fields to update')
      return { json, mask }
    },
  }
}

/** A replace and a patch name the variant too. wire: it never changes; another one is ignored. */
function variantBody(entity: Entity, { by }: Variants, operation: WriteOperation): BodySpec<EntityBody> {
  const bodies = new Map(
    [...variantsOf(entity)].map(([word, variant]) => [word, plainBody(variant, operation)]),
  )
  const { name, required, schema } = plainBody(entity, operation)
  const schemas = [...bodies.values()].map((body) => body.schema)
  return {
    name,
    required,
    schema: variable(String(schema.title), by, schemas),
    read(checked, sent) {
      const word = String((checked as Json)[by])
      const body = bodies.get(word)
      if (!body) throw new Error(`${entity.kind}: no variant '${word}'`)
      return body.read(checked, sent)
    },
  }
}

/** Bodies name members in any case. */
const isField = (entity: Entity, name: string): boolean =>
  writableMembers(entity, 'create').some((member) => member.toLowerCase() === name.toLowerCase())

type Json = Readonly<Record<string, unknown>>
