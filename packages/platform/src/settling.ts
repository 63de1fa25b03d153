import type { ChangeServiceService, Context, Methods, Written } from '@overlay/rpc'
import { answerAnyway } from './answer-anyway.js'

/** A request may take 10 s: enough of them must be left for its answer. */
const WAIT_MS = 5000

/**
 * Returns a write when those who follow its schema have taken their steps, so that who made it sees all of it. It is
 * committed: who is away or late takes them afterwards, and nobody is told that it failed.
 */
export const settling =
  (schema: string, followers: readonly Pick<Methods<ChangeServiceService>, 'reach'>[]) =>
  async (written: Written, context: Context): Promise<Written> => {
    const { position } = written
    const deadline = new Date(
      Math.min(Date.now() + WAIT_MS, context.deadline?.getTime() ?? Number.POSITIVE_INFINITY),
    )
    const taken = followers.map((follower) => follower.reach({ schema, position }, { ...context, deadline }))
    await Promise.all(taken.map((step) => answerAnyway(schema, step)))
    return written
  }

export type Settled = ReturnType<typeof settling>
