import { postureCheck, postureCheckVariants } from '@overlay/model'
import type { Services } from '../clients/services.js'
import type { BodySpec } from '../http/body.js'
import { asEndpoint, type Endpoint } from '../http/endpoint.js'
import { variable } from '../openapi/variants.js'
import { type EntityBody, entityBody } from './entity-body.js'
import type { Handlers, Operation } from './operations.js'
import { uniform } from './uniform.js'

/** Also a replace and a patch say the type. wire: it never changes, and one that is not the check's own is ignored. */
function body(title: string, write: 'create' | 'replace' | 'patch'): BodySpec<EntityBody> {
  const bodies = new Map(
    [...postureCheckVariants].map(([typeId, variant]) => [typeId, entityBody(variant, write)]),
  )
  return {
    name: postureCheck.singular,
    required: true,
    schema: variable(
      title,
      'typeId',
      [...bodies.values()].map(({ schema }) => schema),
    ),
    read(checked, sent) {
      const { typeId } = checked as { readonly typeId: string }
      const found = bodies.get(typeId)
      if (!found) throw new Error(`no posture check is of type '${typeId}'`)
      return found.read(checked, sent)
    },
  }
}

/** Uniform, but for the bodies, whose members follow the type. */
export function postureChecks(services: Services): Handlers {
  const base = uniform(postureCheck, services)
  const withBody = (operation: Operation, body: BodySpec<EntityBody>): Endpoint => {
    const handler = base[operation]
    if (!handler) throw new Error(`${operation} is not uniform`)
    return { ...asEndpoint(handler), body }
  }
  return {
    'POST /posture-checks': withBody('POST /posture-checks', body('postureCheckCreate', 'create')),
    'PUT /posture-checks/{id}': withBody('PUT /posture-checks/{id}', body('postureCheckUpdate', 'replace')),
    'PATCH /posture-checks/{id}': withBody('PATCH /posture-checks/{id}', body('postureCheckPatch', 'patch')),
  }
}
