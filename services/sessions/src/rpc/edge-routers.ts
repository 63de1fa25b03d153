import { edgeRouter } from '@overlay/model'
import type { ChangeServiceService, Context, EntityServiceService, Methods, Written } from '@overlay/rpc'

type Entities = Methods<EntityServiceService>
type Follower = Pick<Methods<ChangeServiceService>, 'reach'>

/**
 * Others follow routers: pki makes their enrollments, identity and policy what a tunneling router needs. Who wrote a
 * router sees all of it at once.
 */
export const settling =
  (schema: string, followers: readonly Follower[]) =>
  async (written: Written, context: Context): Promise<Written> => {
    const { position } = written
    await Promise.all(followers.map((follower) => follower.reach({ schema, position }, context)))
    return written
  }

/** The uniform operations; writes of routers are answered when others have taken their steps. */
export function routers(uniform: Entities, settled: ReturnType<typeof settling>): Entities {
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
