import { readSchemaOf, session, tagsSchema } from '@overlay/model'
import { listOf, named, object, text } from '@overlay/model/schema'
import type { Context } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { around, detail } from '../http/answer.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { takes } from '../http/endpoint.js'
import type { RequestContext } from '../http/request-context.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'
import { sessionOf } from './session.js'

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
    tags: tagsSchema,
    type: { type: 'string', enum: ['Dial', 'Bind', 'Invalid'] },
  },
})

/** Says up to which position of its stream the API session lives, which is what a create is guarded by. */
function vouching(c: RequestContext): Context {
  const { position } = sessionOf(c)
  const context = callContext(c)
  return position ? { ...context, positions: { ...context.positions, identity: position } } : context
}

const routePath = named('sessionRoutePathDetail', object({ routePath: listOf(text) }))

/** Leave to use a service. */
export const sessions = ({ sessions: owner }: Services): Handlers => ({
  'GET /sessions/{id}/route-path': {
    about: { data: routePath },
    handle: async (c, { id }) => {
      const { routerIds } = await owner.getRoutePath({ kind: session.kind, id }, callContext(c))
      return detail(c, JSON.stringify({ routePath: routerIds }))
    },
  },

  'POST /sessions': takes(
    wanted,
    async (c, _, { serviceId = '', type = '', tags }) => {
      const request = { serviceId, type, tags: jsonBytes(tags ?? {}) }
      const made = await owner.createSession(request, vouching(c))
      return send(c, 201, around('{"data":', made.json, ',"meta":{}}')) // wire: the whole session, not its link
    },
    { about: { status: 201, data: readSchemaOf(session), envelope: 'sessionCreateEnvelope' } },
  ),
})
