import { edgeRouter } from '@overlay/model'
import type { Context, EntityServiceService, Methods } from '@overlay/rpc'

type Entities = Methods<EntityServiceService>

/** Steps of others that who wrote a router expects to see at once. */
export interface Elsewhere {
  /** A new router gets its enrollment. */
  enroll(routerId: string, context: Context): Promise<void>
}

/** The uniform operations, and what else a new router needs. */
export const routers = (uniform: Entities, { enroll }: Elsewhere): Entities => ({
  ...uniform,

  async create(request, context) {
    const written = await uniform.create(request, context)
    if (request.kind === edgeRouter.kind) await enroll(written.id, context)
    return written
  },
})
