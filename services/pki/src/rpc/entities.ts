import { enrollment } from '@overlay/model'
import { entityService } from '@overlay/platform'
import type { EntityServiceService, Methods } from '@overlay/rpc'
import { type Creating, createForIdentity } from './create-enrollment.js'
import { enrollments } from './enrollment-kind.js'
import { views } from './views.js'

/** The uniform operations; creates are special, and other kinds ask what enrollments add to them. */
export function entities(creating: Creating): Methods<EntityServiceService> {
  const { history, names } = creating
  const uniform = entityService(history, [enrollments(names)], names)
  return {
    ...uniform,

    async create(request, context) {
      if (request.kind !== enrollment.kind) return uniform.create(request, context)
      return createForIdentity(creating, JSON.parse(Buffer.from(request.json).toString()), context)
    },

    async view(request, context) {
      const view = views[request.kind]
      if (!view) return uniform.view(request, context)
      const members = await view(history.db, request.ids)
      return { json: members.map((one) => Buffer.from(JSON.stringify(one))) }
    },
  }
}
