import { type ChangeLog, momentOf } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
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
import { policiesRequiring, standingOf } from '../domain/posture/access.js'
import type { PostureResponse } from '../domain/posture/data.js'
import { endingSoon } from '../domain/posture/ending-soon.js'
import { judge, saidBy } from '../domain/posture/judge.js'
import { shownPosture } from '../domain/posture/view.js'
import { commonRouters, grantingPolicies, isAdmin as isAdminOf, maySee, mayUse } from '../domain/queries.js'
import { type Engine, orWhatThereIs } from '../engine/engine.js'
import { failedRequests } from '../store/failed-request.js'
import { holdsIdentity } from '../store/lock-identity.js'
import { postureDataOf, takePosture } from '../store/posture-data.js'
import { listServiceConfigs, putServiceConfigs, removeServiceConfigs } from '../store/service-config.js'
import { policyAdvice } from './get-policy-advice.js'
import { refusedFor } from './refuse-posture.js'
import { watchHeaders } from './watch-headers.js'

/** Their states take little of the budget. */
const FEW_API_SESSIONS = 50

const types = { [Access.ACCESS_DIAL]: 'Dial', [Access.ACCESS_BIND]: 'Bind' } as const

export function policyService(
  changeLog: ChangeLog,
  engine: Engine,
  routers: Parameters<typeof policyAdvice>[1],
  names: Names,
): Methods<PolicyServiceService> {
  const { state } = engine
  const known = async (identityId: string, { signal }: Context): Promise<void> => {
    await orWhatThereIs(engine, engine.confirm(signal))
    if (!engine.namesOf('identities').has(identityId)) throw notFound('identity', identityId)
  }
  /** Of those in which endpoints of the identity said something. Asked only when there are many. */
  const endedApiSessions = async (identityId: string, context: Context): Promise<ReadonlySet<string>> => {
    const ids = Object.keys(saidBy(state, identityId).apiSessions)
    if (ids.length <= FEW_API_SESSIONS) return new Set()
    const alive = await names('api-sessions', ids, context)
    return new Set(ids.filter((id) => !alive.has(id) && id !== context.caller.apiSessionId))
  }
  return {
    async authorize({ identityId, serviceId, access, isAdmin, apiSessionId }, { positions, signal }) {
      const type = typeOf(access)
      await engine.reach(positions, signal)
      await engine.vouch(signal)
      const asked = { identityId, apiSessionId }
      const judged = () => {
        if (!maySee(state, { identityId, isAdmin }, serviceId)) throw notFound('service', serviceId)
        // wire: a service that is seen and may not be used so is a field error
        if (!mayUse(state, identityId, serviceId, type))
          throw invalid('ServiceId', 'service not found', serviceId)
        return judge(state, grantingPolicies(state, identityId, serviceId, type), asked)
      }
      let { passing, refusals } = judged()
      if (passing.length === 0) {
        await orWhatThereIs(engine, engine.confirmOwn(signal)) // what was said a moment ago may not be here yet
        ;({ passing, refusals } = judged())
      }
      if (passing.length === 0)
        throw await refusedFor(changeLog, engine, asked, { serviceId, type }, refusals)
      const routerIds = commonRouters(state, identityId, serviceId)
      if (routerIds.length === 0) throw new Fault('NO_EDGE_ROUTERS_AVAILABLE')
      const serviceName = engine.namesOf('services').get(serviceId) ?? ''
      // differs: the original names no policies while there is no posture check at all
      return { routerIds, policyIds: [...passing], serviceName, positions: engine.positions() }
    },

    async getHeader({ identityId }, { positions, signal }) {
      await orWhatThereIs(engine, engine.reach(positions, signal))
      return {
        lastChangeAtMs: engine.lastChangeAtMs(identityId),
        positions: engine.positions(),
        contentKey: contentKey(state, { identityId, isAdmin: isAdminOf(state, identityId) }),
      }
    },

    watchHeaders: (_request, { signal }) => watchHeaders(engine, signal),

    async getCommonRouters({ pairs }, { positions, signal }) {
      await orWhatThereIs(engine, engine.reach(positions, signal))
      const routers = pairs.map(({ identityId, serviceId }) => ({
        ids: commonRouters(state, identityId, serviceId),
      }))
      return { routers }
    },

    async findLost({ held }, { positions, signal }) {
      await engine.reach(positions, signal)
      const standing = standingOf(state)
      const found = held.map(({ identityId, serviceId, access, apiSessionId }) =>
        standing({ identityId, apiSessionId }, serviceId, typeOf(access)),
      )
      return { lost: found.map(({ lost }) => lost), granting: found.map(({ granting }) => granting) }
    },

    async findRequiring({ postureCheckIds }, { positions, signal }) {
      await engine.reach(positions, signal)
      return { policyIds: policiesRequiring(state, postureCheckIds) }
    },

    async getPolicyAdvice({ identityId, serviceId }, context) {
      await orWhatThereIs(engine, engine.confirm(context.signal))
      const advice = await policyAdvice(engine, routers, identityId, serviceId, context)
      return { json: Buffer.from(JSON.stringify(advice)) }
    },

    async listServiceConfigs({ identityId }, context) {
      await known(identityId, context)
      const rows = await listServiceConfigs(changeLog.db, identityId)
      return { json: rows.map((row) => Buffer.from(JSON.stringify(row))) }
    },

    async putServiceConfigs({ identityId, configs }, context) {
      const moment = await momentOf(changeLog.db)
      await known(identityId, context)
      const { position } = await changeLog.write(context, async (tx) => {
        if (!(await holdsIdentity(tx, identityId, moment))) throw notFound('identity', identityId)
        return { result: undefined, changes: await putServiceConfigs(tx, identityId, configs) }
      })
      return { id: identityId, position }
    },

    async removeServiceConfigs({ identityId, configs }, context) {
      await known(identityId, context)
      const { position } = await changeLog.write(context, async (tx) => ({
        result: undefined,
        changes: await removeServiceConfigs(tx, identityId, configs),
      }))
      return { id: identityId, position }
    },

    async submitPosture({ responses }, context) {
      const { identityId, apiSessionId } = context.caller
      const said = responses.map((json) => JSON.parse(Buffer.from(json).toString()) as PostureResponse)
      if (said.length === 0) return { id: identityId, position: undefined, services: jsonOf([]) }
      const ended = await endedApiSessions(identityId, context)
      const { result, position } = await changeLog.write(context, async (tx) => {
        if (!(await holdsIdentity(tx, identityId))) throw new Fault('UNAUTHORIZED')
        const { data, change } = await takePosture(tx, identityId, apiSessionId, said, ended)
        return { result: data, changes: [change] }
      })
      const services = endingSoon(state, context.caller, said, result.apiSessions[apiSessionId])
      const names = engine.namesOf('services')
      const named = services.map((one) => ({ ...one, name: names.get(one.id) ?? '' }))
      return { id: identityId, position, services: jsonOf(named) }
    },

    async getPostureData({ identityId }) {
      return { json: jsonOf(shownPosture(await postureDataOf(changeLog.db, identityId))) }
    },

    async listFailedRequests({ identityId }) {
      return { json: jsonOf(await failedRequests(changeLog.db, identityId)) }
    },
  }
}

const jsonOf = (value: object): Buffer => Buffer.from(JSON.stringify(value))

function typeOf(access: Access): 'Dial' | 'Bind' {
  if (access === Access.ACCESS_DIAL || access === Access.ACCESS_BIND) return types[access]
  throw invalid('type', 'invalid session type', access)
}
