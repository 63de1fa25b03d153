import type { Services } from '../clients/services.js'
import { type JsonSchema, json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { takes } from '../http/endpoint.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'

interface Wanted {
  readonly enabled?: boolean
  readonly duration?: string
  readonly traceId?: string
  readonly channels?: readonly string[]
}

const text = { type: 'string', maxLength: 255 }

const wanted = json<Wanted>('traceSpec', {
  title: 'traceSpec',
  type: 'object',
  properties: {
    channels: { type: 'array', maxItems: 64, items: text },
    duration: text,
    enabled: { type: 'boolean' },
    traceId: text,
  },
})

const told: JsonSchema = {
  title: 'traceDetail',
  type: 'object',
  properties: {
    enabled: { type: 'boolean' },
    traceId: { type: 'string' },
    until: { type: 'string', format: 'date-time' },
  },
}

/** wire: no time at all is the year 1. */
const NEVER = '0001-01-01T00:00:00.000Z'

/** Follows the data flows of one identity for a while. */
export const tracing = ({ identity }: Services): Handlers => ({
  'PUT /identities/{id}/trace': takes(
    wanted,
    async (c, { id }, { enabled = false, duration = '', traceId = '', channels = [] }) => {
      const request = { id, enabled, duration, traceId, channels: [...channels] }
      const trace = await identity.traceIdentity(request, callContext(c))
      const data = enabled
        ? { enabled, traceId: trace.traceId, until: new Date(trace.untilMs).toISOString() }
        : { until: NEVER } // wire: what is false is left out
      return send(c, 200, JSON.stringify({ data, meta: null })) // wire: null here
    },
    { about: { data: told, meta: null, envelope: 'traceDetailEnvelope' } },
  ),
})
