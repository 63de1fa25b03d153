import { apiSession, identity as identityKind, readSchemaOf, session, tagsSchema } from '@overlay/model'
import { listOf, named, object, oneOf, text } from '@overlay/model/schema'
import { Fault, type Positions } from '@overlay/rpc'
import type { GatewayCaches } from '../cache/caches.js'
import type { Self } from '../cache/identities.js'
import { sessionJson, sessionOf } from '../cache/session.js'
import type { Services } from '../clients/services.js'
import { around, detail, empty } from '../http/answer.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext, callContextOf } from '../http/calls.js'
import { takes } from '../http/exchange.js'
import { send, sendPrepared } from '../http/send.js'
import type { Handlers } from './operations.js'
import { apiSessionSchema, serviceUpdatesSchema } from './wire-schemas.js'

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

/** Operations of administrators on API sessions that are not uniform. */
export function apiSessions(services: Services): Handlers {
  const identity = services.entitiesOf('identity')
  return {
    'DELETE /api-sessions/{id}': async (c, { id }) => {
      if (sessionOf(c).keyId !== undefined) throw new Fault('UNAUTHORIZED') // wire: not with an access token
      await identity.delete({ kind: apiSession.kind, id }, callContext(c))
      return empty(c)
    },
  }
}

/** Operations of a session on itself. */
export function current(
  services: Services,
  { sessions, identities, headers }: Pick<GatewayCaches, 'sessions' | 'identities' | 'headers'>,
): Handlers {
  const identity = services.entitiesOf('identity')
  return {
    'GET /current-api-session': {
      about: { data: apiSessionSchema, envelope: 'currentApiSessionDetailEnvelope' },
      handle: (c) => detail(c, sessionJson(sessionOf(c))),
    },
    'DELETE /current-api-session': async (c) => {
      const { id } = sessionOf(c)
      await identity.delete({ kind: 'api-sessions', id }, callContext(c))
      sessions.drop(`api-sessions ${id}`)
      return empty(c)
    },
    'GET /current-identity': {
      about: { data: readSchemaOf(identityKind), meta: null, envelope: 'currentIdentityDetailEnvelope' },
      handle: (c) => {
        const { identityId } = sessionOf(c)
        const send = ({ answer }: Self) => sendPrepared(c, answer)
        const self = identities.self(identityId)
        return self instanceof Promise ? self.then(send) : send(self)
      },
    },
    'GET /current-api-session/service-updates': {
      about: { data: serviceUpdatesSchema, envelope: 'listCurrentApiSessionServiceUpdatesEnvelope' },
      handle: (c) => {
        const { identityId, createdAtMs } = sessionOf(c)
        const send = ({ lastChangeAtMs }: { readonly lastChangeAtMs: number }) => {
          const lastChangeAt = new Date(Math.max(lastChangeAtMs, createdAtMs)).toISOString()
          return detail(c, `{"lastChangeAt":"${lastChangeAt}"}`)
        }
        const header = headers.of(identityId)
        return header instanceof Promise ? header.then(send) : send(header)
      },
    },
  }
}
