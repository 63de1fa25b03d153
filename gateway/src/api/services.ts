import { service } from '@overlay/model'
import type { Headers, PolicyHeader } from '../auth/headers.js'
import type { ServiceLists } from '../auth/service-lists.js'
import { sendReady } from '../http/answer.js'
import type { Ask } from '../http/ask.js'
import type { Handlers } from '../http/endpoint.js'
import { list, listRequest } from '../http/list.js'
import { byRole, type Parameter, paging } from '../http/query.js'
import type { Services } from '../http/services.js'
import { sessionOf } from './current.js'
import { listedSchemaOf } from './entity-schema.js'
import { perspectiveOf } from './uniform.js'

const configTypes: Parameter = {
  name: 'configTypes',
  type: 'strings',
  about: 'Ids or names of the config types whose data is wanted.',
}

/** A client's list of services: identities that see the same share one answer. */
export function clientServices(services: Services, headers: Headers, lists: ServiceLists): Handlers {
  const { list: fetch } = services.entitiesOf('policy')

  function answer(ask: Ask, header: PolicyHeader): Response | Promise<Response> {
    const request = listRequest(ask, 'services', undefined, perspectiveOf(ask))
    const key = lists.keyOf(header, sessionOf(ask), request)
    const kept = lists.get(key)
    if (kept) return sendReady(ask, kept, (bytes) => lists.grown(key, bytes))
    return list(ask, service, request, fetch, (page, body) => {
      // What changed while the rows were read must not be kept under what the header said before.
      if (page.contentKey !== '' && headers.current(header)) lists.keep(key, body)
    })
  }
  return {
    'GET /services': {
      query: [...paging, ...byRole, configTypes],
      about: { data: listedSchemaOf(service), page: true },
      handle: (ask) => {
        const header = headers.of(sessionOf(ask).identityId)
        return header instanceof Promise ? header.then((known) => answer(ask, known)) : answer(ask, header)
      },
    },
  }
}
