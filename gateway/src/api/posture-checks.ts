import { type Entity, postureCheck, postureCheckVariants } from '@overlay/model'
import type { OwnWrites } from '../auth/own-writes.js'
import type { BodySpec, JsonSchema } from '../http/body.js'
import { asEndpoint, type Endpoint, type Handlers } from '../http/endpoint.js'
import type { Services } from '../http/services.js'
import { type EntityBody, entityBody } from './entity-body.js'
import { listedSchemaOf } from './entity-schema.js'
import type { Operation } from './operations.js'
import { uniform } from './uniform.js'

const variants = [...postureCheckVariants]

/** One schema for each type of check; `typeId` says which. */
const variable = (title: string, schemaOf: (variant: Entity) => JsonSchema): JsonSchema => ({
  title,
  type: 'object',
  discriminator: { propertyName: 'typeId' },
  oneOf: variants.map(([, variant]) => schemaOf(variant)),
})

/** Also a replace and a patch say the type. wire: it never changes, and one that is not the check's own is ignored. */
function body(title: string, write: 'create' | 'replace' | 'patch'): BodySpec<EntityBody> {
  const bodies = new Map(variants.map(([typeId, variant]) => [typeId, entityBody(variant, write)]))
  return {
    name: postureCheck.singular,
    required: true,
    schema: variable(title, (variant) => entityBody(variant, write).schema),
    read(checked, sent) {
      const { typeId } = checked as { readonly typeId: string }
      const found = bodies.get(typeId)
      if (!found) throw new Error(`no posture check is of type '${typeId}'`)
      return found.read(checked, sent)
    },
  }
}

/** Uniform, but for the members of a check, which follow its type. */
export function postureChecks(services: Services, own: OwnWrites): Handlers {
  const base = uniform(postureCheck, services, own)
  const changed = (operation: Operation, more: Partial<Endpoint>): Endpoint => {
    const handler = base[operation]
    if (!handler) throw new Error(`${operation} is not uniform`)
    const { about, ...endpoint } = asEndpoint(handler)
    return { ...endpoint, ...more, about: { ...about, ...more.about } }
  }
  const data = variable('postureCheckDetail', listedSchemaOf)
  return {
    'GET /posture-checks': changed('GET /posture-checks', { about: { data } }),
    'GET /posture-checks/{id}': changed('GET /posture-checks/{id}', { about: { data } }),
    'POST /posture-checks': changed('POST /posture-checks', { body: body('postureCheckCreate', 'create') }),
    'PUT /posture-checks/{id}': changed('PUT /posture-checks/{id}', {
      body: body('postureCheckUpdate', 'replace'),
    }),
    'PATCH /posture-checks/{id}': changed('PATCH /posture-checks/{id}', {
      body: body('postureCheckPatch', 'patch'),
    }),
  }
}
