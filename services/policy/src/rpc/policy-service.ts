import { Access, Fault, invalid, type Methods, notFound, type PolicyServiceService } from '@overlay/rpc'
import { contentKey } from '../domain/content.js'
import {
  checksOf,
  commonRouters,
  isAdmin as isAdminOf,
  linkingPolicies,
  maySee,
  mayUse,
} from '../domain/queries.js'
import { type Engine, orWhatThereIs } from '../events/engine.js'
import { policyAdvice } from './policy-advice.js'
import { watchHeaders } from './watch-headers.js'

const types = { [Access.ACCESS_DIAL]: 'Dial', [Access.ACCESS_BIND]: 'Bind' } as const

export function policyService(
  engine: Engine,
  routers: Parameters<typeof policyAdvice>[1],
): Methods<PolicyServiceService> {
  const { state } = engine
  return {
    async authorize({ identityId, serviceId, access, isAdmin }, { positions, signal }) {
      const type = typeOf(access)
      await engine.reach(positions, signal)
      await engine.vouch(signal)
      if (!maySee(state, { identityId, isAdmin }, serviceId)) throw notFound('service', serviceId)
      // wire: a service that is seen and may not be used so is a field error
      if (!mayUse(state, identityId, serviceId, type))
        throw invalid('ServiceId', 'service not found', serviceId)
      const routerIds = commonRouters(state, identityId, serviceId)
      if (routerIds.length === 0) throw new Fault('NO_EDGE_ROUTERS_AVAILABLE')
      const policyIds = linkingPolicies(state, identityId, serviceId)
        .filter((policy) => policy.type === type && checksOf(state, policy.policyId).length > 0)
        .map(({ policyId }) => policyId)
      const serviceName = engine.namesOf('services').get(serviceId) ?? ''
      return { routerIds, policyIds, serviceName, positions: engine.positions() }
    },

    async getHeader({ identityId }, { positions, signal }) {
      await orWhatThereIs(engine.reach(positions, signal))
      return {
        lastChangeAtMs: engine.lastChangeAtMs(identityId),
        positions: engine.positions(),
        contentKey: contentKey(state, { identityId, isAdmin: isAdminOf(state, identityId) }),
      }
    },

    watchHeaders: (_request, { signal }) => watchHeaders(engine, signal),

    async getCommonRouters({ pairs }, { positions, signal }) {
      await orWhatThereIs(engine.reach(positions, signal))
      const routers = pairs.map(({ identityId, serviceId }) => ({
        ids: commonRouters(state, identityId, serviceId),
      }))
      return { routers }
    },

    async findLost({ held }, { positions, signal }) {
      await engine.reach(positions, signal)
      // wire: who is an admin keeps its sessions
      const lost = held.map(
        ({ identityId, serviceId, access }) =>
          !mayUse(state, identityId, serviceId, typeOf(access)) &&
          !(isAdminOf(state, identityId) && maySee(state, { identityId, isAdmin: true }, serviceId)),
      )
      return { lost }
    },

    async getPolicyAdvice({ identityId, serviceId }, context) {
      await orWhatThereIs(engine.confirm(context.signal))
      const advice = await policyAdvice(engine, routers, identityId, serviceId, context)
      return { json: Buffer.from(JSON.stringify(advice)) }
    },
  }
}

function typeOf(access: Access): 'Dial' | 'Bind' {
  if (access === Access.ACCESS_DIAL || access === Access.ACCESS_BIND) return types[access]
  throw invalid('type', 'invalid session type', access)
}
