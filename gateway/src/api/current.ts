import { identity as identityKind } from '@overlay/model'
import type { Headers } from '../cache/headers.js'
import type { Identities, Self } from '../cache/identities.js'
import type { OwnWrites } from '../cache/own-writes.js'
import { type Session, sessionJson } from '../cache/session.js'
import type { Sessions } from '../cache/sessions.js'
import { detail, empty, sendReady } from '../http/answer.js'
import type { Handlers } from '../http/endpoint.js'
import type { Ask } from '../http/request-context.js'
import type { Services } from '../http/services.js'
import { listedSchemaOf } from './entity-schema.js'
import { apiSessionSchema, serviceUpdatesSchema } from './wire-schemas.js'

export interface Caches {
  readonly sessions: Sessions
  readonly identities: Identities
  readonly headers: Headers
}

/** What a session may ask about itself. */
export function current(
  services: Services,
  { sessions, identities, headers }: Caches,
  own: OwnWrites,
): Handlers {
  const identity = services.entitiesOf('identity')
  return {
    'GET /current-api-session': {
      about: { data: apiSessionSchema, envelope: 'currentApiSessionDetailEnvelope' },
      handle: (ask) => detail(ask, sessionJson(sessionOf(ask))),
    },
    'DELETE /current-api-session': async (ask) => {
      const { id } = sessionOf(ask)
      const { position } = await identity.delete({ kind: 'api-sessions', id }, ask.context())
      own.note('identity', position)
      sessions.drop(`api-sessions ${id}`)
      return empty(ask)
    },
    'GET /current-identity': {
      about: { data: listedSchemaOf(identityKind), meta: null, envelope: 'currentIdentityDetailEnvelope' },
      handle: (ask) => {
        const { identityId } = sessionOf(ask)
        const send = ({ answer }: Self) =>
          sendReady(ask, answer, (bytes) => identities.grown(identityId, bytes))
        const self = identities.self(identityId)
        return self instanceof Promise ? self.then(send) : send(self)
      },
    },
    'GET /current-api-session/service-updates': {
      about: { data: serviceUpdatesSchema, envelope: 'listCurrentApiSessionServiceUpdatesEnvelope' },
      handle: (ask) => {
        const { identityId, createdAtMs } = sessionOf(ask)
        const send = ({ lastChangeAtMs }: { readonly lastChangeAtMs: number }) => {
          const lastChangeAt = new Date(Math.max(lastChangeAtMs, createdAtMs)).toISOString()
          return detail(ask, `{"lastChangeAt":"${lastChangeAt}"}`)
        }
        const header = headers.of(identityId)
        return header instanceof Promise ? header.then(send) : send(header)
      },
    },
  }
}

export function sessionOf({ session }: Ask): Session {
  if (!session) throw new Error('the operation table admits callers without a session')
  return session
}
