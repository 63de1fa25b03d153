import { commonRouterMembers, readSchemaOf, routersForClients, service } from '@overlay/model'
import { listOf, named, object, orNull } from '@overlay/model/schema'
import type { Headers, PolicyHeader } from '../cache/headers.js'
import type { ServiceLists } from '../cache/service-lists.js'
import type { Services } from '../clients/services.js'
import { detail } from '../http/answer.js'
import { callContext } from '../http/calls.js'
import type { RequestContext } from '../http/exchange.js'
import { sendPrepared } from '../http/send.js'
import { byRole, list, listRequest, paging } from './list.js'
import type { Handlers } from './operations.js'
import { sessionOf } from './session.js'
import { perspectiveOf } from './uniform.js'

/** A client's list of services: identities that see the same share one answer. */
export function clientServices(services: Services, headers: Headers, lists: ServiceLists): Handlers {
  const { list: fetch, get } = services.entitiesOf('policy')

  function answer(c: RequestContext, header: PolicyHeader): Response | Promise<Response> {
    const request = listRequest(c, 'services', undefined, perspectiveOf(c))
    const key = lists.keyOf(header, sessionOf(c), request)
    const cached = lists.get(key)
    if (cached) return sendPrepared(c, cached)
    return list(c, service, request, fetch, (page, body) => {
      // A change during the read must not be cached under the key of the old header. The page may show it before the
      // notice of it arrives.
      if (page.contentKey === header.contentKey && headers.current(header)) lists.set(key, body)
    })
  }
  return {
    'GET /services/{id}/edge-routers': {
      query: paging,
      about: { data: routersOfService, envelope: 'listServiceEdgeRoutersEnvelope' },
      handle: async (c, { id }) => {
        const { identityId } = sessionOf(c)
        await get({ ref: { kind: 'services', id }, perspective: undefined }, callContext(c)) // 404 where it is not visible
        const pairs = [{ identityId, serviceId: id }]
        const { routers } = await services.policy.getCommonRouters({ pairs }, callContext(c))
        const { json } = await services.sessions.describeRouters(
          { ids: routers[0]?.ids ?? [] },
          callContext(c),
        )
        return detail(c, JSON.stringify({ edgeRouters: routersOf(json) }))
      },
    },
    'GET /services': {
      query: [...paging, ...byRole, ...service.listParameters],
      about: { data: readSchemaOf(service), page: true },
      handle: (c) => {
        const header = headers.of(sessionOf(c).identityId)
        return header instanceof Promise ? header.then((loaded) => answer(c, loaded)) : answer(c, header)
      },
    },
  }
}

const routersOfService = named(
  'serviceEdgeRouters',
  object({
    edgeRouters: orNull(listOf(named('commonEdgeRouterProperties', object(commonRouterMembers)))),
  }),
)

interface ClientRouter {
  readonly isOnline: boolean
}

/** wire: an object with one list. */
const routersOf = (json: readonly Uint8Array[]): readonly ClientRouter[] | null =>
  routersForClients(
    json
      .filter(({ length }) => length > 0)
      .map((bytes) => {
        const { urls: _, ...router } = JSON.parse(Buffer.from(bytes).toString()) as ClientRouter & {
          urls: unknown
        }
        return router
      }),
  )
