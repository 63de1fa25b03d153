import { assignedConfig, policyAdvice } from '@overlay/model'
import { integer, listOf, named, object, text } from '@overlay/model/schema'
import type { Services } from '../clients/services.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { sendData, sendEmpty } from '../http/envelope.js'
import { acceptBody } from '../http/exchange.js'
import type { Handlers } from './operations.js'

const disableBody = json<{ readonly durationMinutes: number }>(
  'disable',
  named('disableParams', object({ durationMinutes: integer })),
)

interface ServiceConfig {
  readonly serviceId: string
  readonly configId: string
}

const pairs = named(
  'serviceConfigsAssignList',
  listOf(named('serviceConfigAssign', object({ configId: text, serviceId: text }))),
)
const assignBody = json<readonly ServiceConfig[] | undefined>('serviceConfigs', pairs)
const removeBody = json<readonly ServiceConfig[] | undefined>('serviceConfigIdPairs', pairs, false)

/** Special operations on identities. */
export const identities = ({ identity, policy }: Services): Handlers => ({
  // 0 minutes: until it is enabled again. differs: an envelope, where the original sends nothing
  'POST /identities/{id}/disable': acceptBody(disableBody, async (c, { id }, { durationMinutes }) => {
    await identity.disableIdentity({ id, durationMinutes }, callContext(c))
    return sendEmpty(c)
  }),

  'POST /identities/{id}/enable': async (c, { id }) => {
    await identity.enableIdentity({ kind: 'identities', id }, callContext(c))
    return sendEmpty(c)
  },

  // wire: `meta` has pagination with limit = totalCount, and no filterableFields
  'GET /identities/{id}/service-configs': {
    response: { data: assignedConfig, page: true },
    handle: async (c, { id }) => {
      const { json: rows } = await policy.listServiceConfigs({ identityId: id }, callContext(c))
      const pagination = { limit: rows.length, offset: 0, totalCount: rows.length }
      return sendData(c, Buffer.from(`[${rows.join(',')}]`), 200, JSON.stringify({ pagination }))
    },
  },

  'POST /identities/{id}/service-configs': acceptBody(assignBody, async (c, { id }, configs = []) => {
    const request = { identityId: id, configs: [...configs] }
    await policy.putServiceConfigs(request, callContext(c))
    return sendEmpty(c)
  }),

  'DELETE /identities/{id}/service-configs': acceptBody(removeBody, async (c, { id }, configs = []) => {
    const request = { identityId: id, configs: [...configs] }
    await policy.removeServiceConfigs(request, callContext(c))
    return sendEmpty(c)
  }),

  'GET /identities/{id}/policy-advice/{serviceId}': {
    response: { data: policyAdvice, meta: null, envelope: 'getIdentityPolicyAdviceEnvelope' },
    handle: async (c, { id, serviceId }) => {
      const { json } = await policy.getPolicyAdvice({ identityId: id, serviceId }, callContext(c))
      return sendData(c, json, 200, 'null') // wire: `meta` is null
    },
  },
})
