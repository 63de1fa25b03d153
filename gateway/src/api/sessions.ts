import { session } from '@overlay/model'
import { around, send } from '../http/answer.js'
import { json, jsonBytes } from '../http/body.js'
import { type Handlers, takes } from '../http/endpoint.js'
import type { Services } from '../http/services.js'
import { listedSchemaOf } from './entity-schema.js'

interface Wanted {
  readonly serviceId?: string
  readonly type?: string
  readonly tags?: object | null
}

const wanted = json<Wanted>('session', {
  title: 'sessionCreate',
  type: 'object',
  properties: {
    serviceId: { type: 'string' },
    tags: { type: ['object', 'null'], additionalProperties: true },
    type: { type: 'string', enum: ['Dial', 'Bind', 'Invalid'] },
  },
})

/** Leave to use a service. */
export const sessions = ({ sessions: owner }: Services): Handlers => ({
  'POST /sessions': takes(
    wanted,
    async (ask, _, { serviceId = '', type = '', tags }) => {
      const request = { serviceId, type, tags: jsonBytes(tags ?? {}) }
      const made = await owner.createSession(request, ask.context())
      return send(ask, 201, around('{"data":', made.json, ',"meta":{}}')) // wire: the whole session, not its link
    },
    { about: { status: 201, data: listedSchemaOf(session) } },
  ),
})
