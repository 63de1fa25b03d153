import { identity as identityKind, readSchemaOf, session, tagsSchema } from '@overlay/model'
import { listOf, named, object, oneOf, text } from '@overlay/model/schema'
import type { Positions } from '@overlay/rpc'
import type { GatewayCaches } from '../cache/caches.js'
import type { Self } from '../cache/identities.js'
import { renderSession, sessionOf } from '../cache/session.js'
import type { Services } from '../clients/services.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext, callContextOf } from '../http/calls.js'
import { sendData, sendEmpty } from '../http/envelope.js'
import { acceptBody } from '../http/exchange.js'
import { sendPrepared } from '../http/send.js'
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
    response: { data: routePath },
    handle: async (c, { id }) => {
      const { routerIds } = await owner.getRoutePath({ kind: session.kind, id }, callContext(c))
      return sendData(c, { routePath: routerIds })
    },
  },

  'POST /sessions': acceptBody(
    createBody,
    async (c, _, { serviceId = '', type = '', tags }) => {
      const { position: apiSessionAt, keyId } = sessionOf(c) // the position guards the create against a revocation
      const hasAccessToken = keyId !== undefined
      const request = { serviceId, type, tags: tags ? jsonBytes(tags) : none, apiSessionAt, hasAccessToken }
      const created = await owner.createSession(request, callContextOf(c, written()))
      return sendData(c, created.json, 201) // wire: `data` is the whole session, not `_links` and `id`
    },
    { response: { status: 201, data: readSchemaOf(session), envelope: 'sessionCreateEnvelope' } },
  ),
})

/** Operations of a session on itself. */
export function current(
  services: Services,
  { sessions, identities, headers }: Pick<GatewayCaches, 'sessions' | 'identities' | 'headers'>,
): Handlers {
  const identity = services.entitiesOf('identity')
  return {
    'GET /current-api-session': {
      response: { data: apiSessionSchema, envelope: 'currentApiSessionDetailEnvelope' },
      handle: (c) => sendData(c, renderSession(sessionOf(c))),
    },
    'DELETE /current-api-session': async (c) => {
      const { id } = sessionOf(c)
      await identity.delete({ kind: 'api-sessions', id }, callContext(c))
      sessions.drop(`api-sessions ${id}`)
      return sendEmpty(c)
    },
    'GET /current-identity': {
      response: { data: readSchemaOf(identityKind), meta: null, envelope: 'currentIdentityDetailEnvelope' },
      handle: (c) => {
        const { identityId } = sessionOf(c)
        const send = ({ answer }: Self) => sendPrepared(c, answer)
        const self = identities.self(identityId)
        return self instanceof Promise ? self.then(send) : send(self)
      },
    },
    'GET /current-api-session/service-updates': {
      response: { data: serviceUpdatesSchema, envelope: 'listCurrentApiSessionServiceUpdatesEnvelope' },
      handle: (c) => {
        const { identityId, createdAtMs } = sessionOf(c)
        const send = ({ lastChangeAtMs }: { readonly lastChangeAtMs: number }) => {
          const lastChangeAt = new Date(Math.max(lastChangeAtMs, createdAtMs)).toISOString()
          return sendData(c, { lastChangeAt })
        }
        const header = headers.of(identityId)
        return header instanceof Promise ? header.then(send) : send(header)
      },
    },
  }
}
