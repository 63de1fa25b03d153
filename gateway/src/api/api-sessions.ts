import { apiSession } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { empty } from '../http/answer.js'
import { callContext } from '../http/calls.js'
import type { Handlers } from './operations.js'
import { sessionOf } from './session.js'

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
