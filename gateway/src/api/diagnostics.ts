import { anyObject, flag, listOf, named, object, text, texts, time } from '@overlay/model/schema'
import type { InspectedValue } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { sendData } from '../http/envelope.js'
import { acceptBody } from '../http/exchange.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'

const request = json<{ readonly appRegex: string; readonly requestedValues: readonly string[] }>(
  'request',
  named('inspectRequest', object({ appRegex: text, requestedValues: listOf(text) })),
)

const response = named(
  'inspectResponse',
  object(
    { success: flag },
    {
      errors: listOf(text),
      values: listOf(named('inspectResponseValue', object({ ...texts('appId', 'name'), value: anyObject }))),
    },
  ),
)

/** Values of routers and of replicas, for diagnosis. */
export const inspections = ({ sessions }: Pick<Services, 'sessions'>): Handlers => ({
  'POST /inspections': acceptBody(
    request,
    async (c, _, { appRegex, requestedValues }) => {
      const asked = { pattern: appRegex, values: [...requestedValues] }
      const { errors, values } = await sessions.inspect(asked, callContext(c))
      // wire: the members are the whole body, without `data` and `meta`
      const answer = { errors, success: errors.length === 0, values: values.map(shown) }
      return send(c, 200, JSON.stringify(answer))
    },
    { response: { data: response } },
  ),
})

/** wire: an object or a list is shown as such, other values as text. */
const shown = ({ appId, name, value }: InspectedValue) => ({ appId, name, value: parsed(value) })

function parsed(value: string): unknown {
  if (!/^[{[]/.test(value)) return value
  try {
    return JSON.parse(value)
  } catch (err) {
    if (err instanceof SyntaxError) return value
    throw err
  }
}

interface TraceSpec {
  readonly enabled?: boolean
  readonly duration?: string
  readonly traceId?: string
  readonly channels?: readonly string[]
}

const word = { type: 'string', maxLength: 255 }
const words = { type: 'array', maxItems: 64, items: word }

const traceBody = json<TraceSpec>(
  'traceSpec',
  named('traceSpec', object({}, { channels: words, duration: word, enabled: flag, traceId: word })),
)

const traceDetail = named('traceDetail', object({}, { enabled: flag, traceId: text, until: time }))

/** wire: `until` of a trace that is off. */
const NEVER = '0001-01-01T00:00:00.000Z'

/** Traces the data flows of one identity for a limited time. */
export const tracing = ({ identity }: Services): Handlers => ({
  'PUT /identities/{id}/trace': acceptBody(
    traceBody,
    async (c, { id }, { enabled = false, duration = '', traceId = '', channels = [] }) => {
      const request = { id, enabled, duration, traceId, channels: [...channels] }
      const trace = await identity.traceIdentity(request, callContext(c))
      const data = enabled
        ? { enabled, traceId: trace.traceId, until: new Date(trace.untilMs).toISOString() }
        : { until: NEVER } // wire: `enabled` and `traceId` are absent when a trace is off
      return sendData(c, data, 200, 'null') // wire: `meta` is null
    },
    { response: { data: traceDetail, meta: null, envelope: 'traceDetailEnvelope' } },
  ),
})
