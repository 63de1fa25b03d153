import { ca, enrollment } from '@overlay/model'
import type { WaitForFollowers } from '@overlay/platform/change-log'
import { entityService } from '@overlay/platform/kind-store'
import type { EntityServiceService, Methods } from '@overlay/rpc'
import { cas } from './ca.js'
import { type Creating, createForIdentity } from './create-enrollment.js'
import { enrollments } from './enrollment.js'
import { views } from './foreign.js'

/**
 * The uniform operations; creates are special, and other kinds ask what enrollments add to them.
 * `settled`: after an authority has gone, its authenticators.
 */
export function entities(creating: Creating, settled: WaitForFollowers): Methods<EntityServiceService> {
  const { changeLog, names } = creating
  const uniform = entityService({
    changeLog,
    kinds: [enrollments(names), cas],
    names,
    foreign: views,
  })
  return {
    ...uniform,

    async create(request, context) {
      if (request.kind !== enrollment.kind) return uniform.create(request, context)
      return createForIdentity(creating, JSON.parse(Buffer.from(request.json).toString()), context)
    },

    async delete(request, context) {
      const written = await uniform.delete(request, context)
      return request.kind === ca.kind ? settled(written, context) : written
    },
  }
}
