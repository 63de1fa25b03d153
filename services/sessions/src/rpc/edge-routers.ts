import { edgeRouter } from '@overlay/model'
import type { Settled } from '@overlay/platform'
import type { EntityServiceService, Methods } from '@overlay/rpc'

type Entities = Methods<EntityServiceService>

/**
 * The uniform operations. Others follow routers: pki makes their enrollments, identity and policy what a tunneling
 * router needs.
 */
export function routers(uniform: Entities, settled: Settled): Entities {
  return {
    ...uniform,

    async create(request, context) {
      const written = await uniform.create(request, context)
      return request.kind === edgeRouter.kind ? settled(written, context) : written
    },

    async update(request, context) {
      const written = await uniform.update(request, context)
      return request.ref?.kind === edgeRouter.kind ? settled(written, context) : written
    },

    async delete(request, context) {
      const written = await uniform.delete(request, context)
      return request.kind === edgeRouter.kind ? settled(written, context) : written
    },
  }
}
