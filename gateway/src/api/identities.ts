import { flag, integer, links, listOf, named, object, orNull, reference, text } from '@overlay/model/schema'
import type { Services } from '../clients/services.js'
import { around, empty } from '../http/answer.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { takes } from '../http/endpoint.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'

const disabling = json<{ readonly durationMinutes: number }>('disable', {
  title: 'disableParams',
  type: 'object',
  properties: { durationMinutes: { type: 'integer' } },
  required: ['durationMinutes'],
})

interface ServiceConfig {
  readonly serviceId: string
  readonly configId: string
}

const pairs = named(
  'serviceConfigsAssignList',
  listOf(named('serviceConfigAssign', object({ configId: text, serviceId: text }))),
)
const assigned = json<readonly ServiceConfig[] | undefined>('serviceConfigs', pairs)
const removed = json<readonly ServiceConfig[] | undefined>('serviceConfigIdPairs', pairs, false)

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

/** What is done to an identity beside reading and writing it. */
export const identities = ({ identity, policy }: Services): Handlers => ({
  // 0 minutes: until somebody enables it again. differs: an envelope, where the original sends nothing
  'POST /identities/{id}/disable': takes(disabling, async (c, { id }, { durationMinutes }) => {
    await identity.disableIdentity({ id, durationMinutes }, callContext(c))
    return empty(c)
  }),

  'POST /identities/{id}/enable': async (c, { id }) => {
    await identity.enableIdentity({ kind: 'identities', id }, callContext(c))
    return empty(c)
  },

  // wire: a list without the symbols that filters may use
  'GET /identities/{id}/service-configs': {
    about: { data: serviceConfig, page: true },
    handle: async (c, { id }) => {
      const { json: rows } = await policy.listServiceConfigs({ identityId: id }, callContext(c))
      const pagination = { limit: rows.length, offset: 0, totalCount: rows.length }
      return send(c, 200, `{"data":[${rows.join(',')}],"meta":${JSON.stringify({ pagination })}}`)
    },
  },

  'POST /identities/{id}/service-configs': takes(assigned, async (c, { id }, configs = []) => {
    const request = { identityId: id, configs: [...configs] }
    await policy.putServiceConfigs(request, callContext(c))
    return empty(c)
  }),

  'DELETE /identities/{id}/service-configs': takes(removed, async (c, { id }, configs = []) => {
    const request = { identityId: id, configs: [...configs] }
    await policy.removeServiceConfigs(request, callContext(c))
    return empty(c)
  }),

  'GET /identities/{id}/policy-advice/{serviceId}': {
    about: { data: advice, meta: null, envelope: 'getIdentityPolicyAdviceEnvelope' },
    handle: async (c, { id, serviceId }) => {
      const { json: shown } = await policy.getPolicyAdvice({ identityId: id, serviceId }, callContext(c))
      return send(c, 200, around('{"data":', shown, ',"meta":null}')) // wire: null here
    },
  },
})
