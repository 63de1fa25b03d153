import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { contentKey } from '../domain/authorization/content-key.js'
import { openAccessEvaluator, policiesRequiring } from '../domain/authorization/session-access.js'
import { commonRouters, isAdmin, routersOfIdentities } from '../domain/state-queries.js'
import { accessTypeOf } from './encoding.js'
import type { MethodDeps } from './method-deps.js'

/** What identities may use, from memory. */
export const accessMethods = ({ engine }: Pick<MethodDeps, 'engine'>) =>
  ({
    async findLost({ held }, context) {
      await engine.waitFor(context.positions, context)
      const evaluate = openAccessEvaluator(engine.state)
      const states = held.map(({ identityId, serviceId, access, apiSessionId, postureAtRouters }) =>
        evaluate({ identityId, apiSessionId }, serviceId, accessTypeOf(access), postureAtRouters),
      )
      return { lost: states.map(({ lost }) => lost), granting: states.map(({ granting }) => granting) }
    },

    async findRequiring({ postureCheckIds }, context) {
      await engine.waitFor(context.positions, context)
      return { policyIds: policiesRequiring(engine.state, postureCheckIds) }
    },

    async getCommonRouters({ pairs }, context) {
      await engine.bestEffort(engine.waitFor(context.positions, context))
      return {
        routers: pairs.map(({ identityId, serviceId }) => ({
          ids: commonRouters(engine.state, identityId, serviceId),
        })),
      }
    },

    async getIdentityRouters({ identityIds }, context) {
      await engine.waitFor(context.positions, context)
      const { sets, setOf } = routersOfIdentities(engine.state, identityIds)
      return { sets: sets.map((ids) => ({ ids })), setOf: [...setOf] }
    },

    async getHeader({ identityId }, context) {
      await engine.bestEffort(engine.waitFor(context.positions, context))
      const { state } = engine
      return {
        lastChangeAtMs: engine.lastChangeAtMs(identityId),
        positions: engine.positions(),
        contentKey: contentKey(state, { identityId, isAdmin: isAdmin(state, identityId) }),
      }
    },
  }) satisfies Partial<Methods<PolicyServiceService>>
