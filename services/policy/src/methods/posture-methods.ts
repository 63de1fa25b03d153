import type { endingServices, SchemaValue } from '@overlay/model'
import { type Context, Fault, type Methods, type PolicyServiceService } from '@overlay/rpc'
import { losesCheck, postureOf } from '../domain/authorization/evaluate-policies.js'
import { endingSoon } from '../domain/authorization/expiring-services.js'
import type { PostureResponse } from '../domain/posture/posture-data.js'
import { postureView } from '../domain/posture/posture-view.js'
import { FEW_API_SESSIONS } from '../limits.js'
import { failedRequests } from '../store/failed-request.js'
import { lockIdentity } from '../store/lock-identity.js'
import { postureDataOf, savePosture } from '../store/posture-data.js'
import { jsonOf } from './encoding.js'
import type { MethodDeps } from './method-deps.js'

/** The posture of identities. */
export const postureMethods = (deps: MethodDeps) =>
  ({
    async submitPosture({ responses: messages }, context) {
      const { changeLog, engine } = deps
      const { identityId, apiSessionId } = context.caller
      const responses = messages.map((json) => JSON.parse(Buffer.from(json).toString()) as PostureResponse)
      if (responses.length === 0) return { id: identityId, position: undefined, services: jsonOf([]) }
      const ended = await endedApiSessions(deps, identityId, context)
      const { result, position } = await changeLog.write(context, async (tx) => {
        if (!(await lockIdentity(tx, identityId))) throw new Fault('UNAUTHORIZED')
        const { before, data, change } = await savePosture(tx, identityId, apiSessionId, responses, ended)
        return { result: { before, data }, changes: [change] }
      })
      const { before, data } = result
      // wire: when the response is sent, the sessions that lose access by it have ended
      if (losesCheck(engine.state, apiSessionId, before, data))
        await deps.waitForFollowers({ id: identityId, position }, context, ['sessions'])
      const services = endingSoon(engine.state, context.caller, responses, data.apiSessions[apiSessionId])
      const names = engine.namesOf('services')
      const named: SchemaValue<typeof endingServices> = services.map((one) => ({
        ...one,
        name: names.get(one.id) ?? '',
      }))
      return { id: identityId, position, services: jsonOf(named) }
    },

    async getPostureData({ identityId }) {
      return { json: jsonOf(postureView(await postureDataOf(deps.changeLog.db, identityId))) }
    },

    async listFailedRequests({ identityId }) {
      return { json: jsonOf(await failedRequests(deps.changeLog.db, identityId)) }
    },
  }) satisfies Partial<Methods<PolicyServiceService>>

/** The API sessions that have ended, of those with a state in the posture of the identity. */
async function endedApiSessions(
  { engine, names }: MethodDeps,
  identityId: string,
  context: Context,
): Promise<ReadonlySet<string>> {
  const ids = Object.keys(postureOf(engine.state, identityId).apiSessions)
  if (ids.length <= FEW_API_SESSIONS) return new Set()
  const alive = await names('api-sessions', ids, context)
  return new Set(ids.filter((id) => !alive.has(id) && id !== context.caller.apiSessionId))
}
