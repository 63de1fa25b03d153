import type { ChangeServiceService, Context, Methods, Written } from '@overlay/rpc'

/** Returns a write when those who follow its schema have taken their steps, so that who made it sees all of it. */
export const settling =
  (schema: string, followers: readonly Pick<Methods<ChangeServiceService>, 'reach'>[]) =>
  async (written: Written, context: Context): Promise<Written> => {
    const { position } = written
    await Promise.all(followers.map((follower) => follower.reach({ schema, position }, context)))
    return written
  }

export type Settled = ReturnType<typeof settling>
