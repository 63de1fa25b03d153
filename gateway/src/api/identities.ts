import { flag, integer, links, listOf, named, object, orNull, reference, text } from '@overlay/model/schema'
import type { Services } from '../clients/services.js'
import { around, empty } from '../http/answer.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { takes } from '../http/exchange.js'
import { send } from '../http/send.js'
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

const serviceConfig = named(
  'serviceConfigDetail',
  object({ config: reference, configId: text, service: reference, serviceId: text }),
)

const router = named(
  'routerEntityRef',
  object({ _links: links, entity: text, id: text, isOnline: flag }, { name: text }),
)

const advice = named(
  'policyAdvice',
  object(
    {
      commonRouters: orNull(listOf(router)),
      identity: reference,
      identityId: text,
      service: reference,
      serviceId: text,
    },
    { identityRouterCount: integer, isBindAllowed: flag, isDialAllowed: flag, serviceRouterCount: integer },
  ),
)

/** Special operations on identities. */
export const identities = ({ identity, policy }: Services): Handlers => ({
  // 0 minutes: until it is enabled again. differs: an envelope, where the original sends nothing
  'POST /identities/{id}/disable': takes(disableBody, async (c, { id }, { durationMinutes }) => {
    await identity.disableIdentity({ id, durationMinutes }, callContext(c))
    return empty(c)
  }),

  'POST /identities/{id}/enable': async (c, { id }) => {
    await identity.enableIdentity({ kind: 'identities', id }, callContext(c))
    return empty(c)
  },

  // wire: a list without filterable fields
  'GET /identities/{id}/service-configs': {
    about: { data: serviceConfig, page: true },
    handle: async (c, { id }) => {
      const { json: rows } = await policy.listServiceConfigs({ identityId: id }, callContext(c))
      const pagination = { limit: rows.length, offset: 0, totalCount: rows.length }
      return send(c, 200, `{"data":[${rows.join(',')}],"meta":${JSON.stringify({ pagination })}}`)
    },
  },

  'POST /identities/{id}/service-configs': takes(assignBody, async (c, { id }, configs = []) => {
    const request = { identityId: id, configs: [...configs] }
    await policy.putServiceConfigs(request, callContext(c))
    return empty(c)
  }),

  'DELETE /identities/{id}/service-configs': takes(removeBody, async (c, { id }, configs = []) => {
    const request = { identityId: id, configs: [...configs] }
    await policy.removeServiceConfigs(request, callContext(c))
    return empty(c)
  }),

  'GET /identities/{id}/policy-advice/{serviceId}': {
    about: { data: advice, meta: null, envelope: 'getIdentityPolicyAdviceEnvelope' },
    handle: async (c, { id, serviceId }) => {
      const { json: policyAdvice } = await policy.getPolicyAdvice(
        { identityId: id, serviceId },
        callContext(c),
      )
      return send(c, 200, around('{"data":', policyAdvice, ',"meta":null}')) // wire: null here
    },
  },
})
