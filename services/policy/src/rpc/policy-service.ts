import type { History } from '@overlay/platform'
import {
  Access,
  type Context,
  Fault,
  invalid,
  type Methods,
  notFound,
  type PolicyServiceService,
} from '@overlay/rpc'
import { contentKey } from '../domain/content.js'
import { commonRouters, isAdmin as isAdminOf, linkingPolicies, maySee, mayUse } from '../domain/queries.js'
import { type Engine, orWhatThereIs } from '../events/engine.js'
import { listServiceConfigs, putServiceConfigs, removeServiceConfigs } from '../store/service-config.js'
import { policyAdvice } from './policy-advice.js'
import { watchHeaders } from './watch-headers.js'

const types = { [Access.ACCESS_DIAL]: 'Dial', [Access.ACCESS_BIND]: 'Bind' } as const

export function policyService(
  history: History,
  engine: Engine,
  routers: Parameters<typeof policyAdvice>[1],
): Methods<PolicyServiceService> {
  const { state } = engine
  const known = async (identityId: string, { signal }: Context): Promise<void> => {
    await orWhatThereIs(engine.confirm(signal))
    if (!engine.namesOf('identities').has(identityId)) throw notFound('identity', identityId)
  }
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
      // differs: the original names none while there is no posture check at all
      const policyIds = linkingPolicies(state, identityId, serviceId)
        .filter((policy) => policy.type === type)
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

    async listServiceConfigs({ identityId }, context) {
      await known(identityId, context)
      const rows = await listServiceConfigs(history.db, identityId)
      return { json: rows.map((row) => Buffer.from(JSON.stringify(row))) }
    },

    async putServiceConfigs({ identityId, configs }, context) {
      await known(identityId, context)
      const { position } = await history.write(context, async (tx) => ({
        result: undefined,
        changes: await putServiceConfigs(tx, identityId, configs),
      }))
      return { id: identityId, position }
    },

    async removeServiceConfigs({ identityId, configs }, context) {
      await known(identityId, context)
      const { position } = await history.write(context, async (tx) => ({
        result: undefined,
        changes: await removeServiceConfigs(tx, identityId, configs),
      }))
      return { id: identityId, position }
    },
  }
}

function typeOf(access: Access): 'Dial' | 'Bind' {
  if (access === Access.ACCESS_DIAL || access === Access.ACCESS_BIND) return types[access]
  throw invalid('type', 'invalid session type', access)
}
