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

  'GET /identities/{id}/policy-advice/{serviceId}': async (ask, { id, serviceId }) => {
    const advice = await policy.getPolicyAdvice({ identityId: id, serviceId }, ask.context())
    return send(ask, 200, around('{"data":', advice.json, ',"meta":null}')) // wire: null here
  },
})
