import { readSchemaOf, session, tagsSchema } from '@overlay/model'
import { listOf, named, object, oneOf, text } from '@overlay/model/schema'
import type { Positions } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { around, detail } from '../http/answer.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext, callContextOf } from '../http/calls.js'
import { takes } from '../http/exchange.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'
import { sessionOf } from './session.js'

interface SessionCreate {
  readonly serviceId?: string
  readonly type?: string
  readonly tags?: object | null
}

const createBody = json<SessionCreate>(
  'session',
  named(
    'sessionCreate',
    object({}, { serviceId: text, tags: tagsSchema, type: oneOf('Dial', 'Bind', 'Invalid') }),
  ),
)

/** Of a request without tags. */
const none = Buffer.alloc(0)

const routePath = named('sessionRoutePathDetail', object({ routePath: listOf(text) }))

/** Sessions: the right to use a service. */
export const sessions = ({ sessions: owner }: Services, written: () => Positions): Handlers => ({
  'GET /sessions/{id}/route-path': {
    about: { data: routePath },
    handle: async (c, { id }) => {
      const { routerIds } = await owner.getRoutePath({ kind: session.kind, id }, callContext(c))
      return detail(c, JSON.stringify({ routePath: routerIds }))
    },
  },

  'POST /sessions': takes(
    createBody,
    async (c, _, { serviceId = '', type = '', tags }) => {
      const apiSessionAt = sessionOf(c).position // guards the create against a revocation
      const request = { serviceId, type, tags: tags ? jsonBytes(tags) : none, apiSessionAt }
      const created = await owner.createSession(request, callContextOf(c, written()))
      return send(c, 201, around('{"data":', created.json, ',"meta":{}}')) // wire: the whole session, not its link
    },
    { about: { status: 201, data: readSchemaOf(session), envelope: 'sessionCreateEnvelope' } },
  ),
})
