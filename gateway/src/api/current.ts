import { identity as identityKind, readSchemaOf } from '@overlay/model'
import type { GatewayCaches } from '../cache/caches.js'
import type { Self } from '../cache/identities.js'
import { sessionJson } from '../cache/session.js'
import type { Services } from '../clients/services.js'
import { detail, empty } from '../http/answer.js'
import { callContext } from '../http/calls.js'
import { sendPrepared } from '../http/send.js'
import type { Handlers } from './operations.js'
import { sessionOf } from './session.js'
import { apiSessionSchema, serviceUpdatesSchema } from './wire-schemas.js'

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
