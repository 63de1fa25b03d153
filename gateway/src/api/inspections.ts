import { anyObject, flag, listOf, named, object, text, texts } from '@overlay/model/schema'
import type { InspectedValue } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { takes } from '../http/exchange.js'
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
  'POST /inspections': takes(
    request,
    async (c, _, { appRegex, requestedValues }) => {
      const asked = { pattern: appRegex, values: [...requestedValues] }
      const { errors, values } = await sessions.inspect(asked, callContext(c))
      // wire: no envelope
      const answer = { errors, success: errors.length === 0, values: values.map(shown) }
      return send(c, 200, JSON.stringify(answer))
    },
    { about: { data: response } },
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
