import type { OwnWrites } from '../auth/own-writes.js'
import { around, empty, send } from '../http/answer.js'
import { json } from '../http/body.js'
import { type Handlers, takes } from '../http/endpoint.js'
import type { Services } from '../http/services.js'

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

const serviceConfigs = (required: boolean) =>
  json<readonly ServiceConfig[] | undefined>(
    'serviceConfigs',
    {
      title: 'serviceConfigsAssign',
      type: 'array',
      items: {
        type: 'object',
        properties: { serviceId: { type: 'string' }, configId: { type: 'string' } },
        required: ['configId', 'serviceId'],
      },
    },
    required,
  )

/** What is done to an identity beside reading and writing it. */
export const identities = ({ identity, policy }: Services, own: OwnWrites): Handlers => ({
  // 0 minutes: until somebody enables it again. differs: an envelope, where the original sends nothing
  'POST /identities/{id}/disable': takes(disabling, async (ask, { id }, { durationMinutes }) => {
    const { position } = await identity.disableIdentity({ id, durationMinutes }, ask.context())
    own.note('identity', position)
    return empty(ask)
  }),

  'POST /identities/{id}/enable': async (ask, { id }) => {
    const { position } = await identity.enableIdentity({ kind: 'identities', id }, ask.context())
    own.note('identity', position)
    return empty(ask)
  },

  // wire: a list without the symbols that filters may use
  'GET /identities/{id}/service-configs': async (ask, { id }) => {
    const { json: rows } = await policy.listServiceConfigs({ identityId: id }, ask.context())
    const pagination = { limit: rows.length, offset: 0, totalCount: rows.length }
    return send(ask, 200, `{"data":[${rows.join(',')}],"meta":${JSON.stringify({ pagination })}}`)
  },

  'POST /identities/{id}/service-configs': takes(serviceConfigs(true), async (ask, { id }, configs = []) => {
    const request = { identityId: id, configs: [...configs] }
    own.note('policy', (await policy.putServiceConfigs(request, ask.context())).position)
    return empty(ask)
  }),

  'DELETE /identities/{id}/service-configs': takes(
    serviceConfigs(false),
    async (ask, { id }, configs = []) => {
      const request = { identityId: id, configs: [...configs] }
      own.note('policy', (await policy.removeServiceConfigs(request, ask.context())).position)
      return empty(ask)
    },
  ),

  'GET /identities/{id}/policy-advice/{serviceId}': async (ask, { id, serviceId }) => {
    const advice = await policy.getPolicyAdvice({ identityId: id, serviceId }, ask.context())
    return send(ask, 200, around('{"data":', advice.json, ',"meta":null}')) // wire: null here
  },
})
