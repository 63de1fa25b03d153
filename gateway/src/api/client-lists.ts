import {
  clientSchemaOf,
  commonRouterMembers,
  edgeRouter,
  externalJwtSigner,
  readSchemaOf,
  routersForClients,
  service,
  session,
  terminator,
} from '@overlay/model'
import { listOf, named, object, orNull } from '@overlay/model/schema'
import { Perspective, Selection } from '@overlay/rpc'
import type { Headers, PolicyHeader } from '../cache/headers.js'
import type { ServiceLists } from '../cache/service-lists.js'
import { sessionOf } from '../cache/session.js'
import type { Services } from '../clients/services.js'
import { callContext } from '../http/calls.js'
import { sendData } from '../http/envelope.js'
import type { RequestContext } from '../http/exchange.js'
import { sendPrepared } from '../http/send.js'
import type { Handlers } from './operations.js'
import { byRole, paging, readListRequest, sendList } from './send-list.js'
import { perspectiveOf } from './uniform.js'

const asClient = Perspective.fromPartial({ asClient: true })

/** Lists that show clients less than admins. */
export function clientLists({ entitiesOf }: Services): Handlers {
  const policy = entitiesOf('policy')
  const rows = entitiesOf('sessions')
  const signers = entitiesOf('identity')

  const routersOf = (c: RequestContext): Promise<Selection> | Selection => {
    const { identityId, isAdmin } = sessionOf(c)
    if (isAdmin) return everyRouter
    const from = { kind: 'identities', id: identityId }
    return policy.select({ from, link: edgeRouter.kind, perspective: undefined }, callContext(c))
  }
  return {
    'GET /current-identity/edge-routers': {
      query: [...paging, ...byRole],
      response: { data: clientSchemaOf(edgeRouter), page: true },
      handle: async (c) => {
        const within = await routersOf(c)
        return sendList(c, edgeRouter, readListRequest(c, edgeRouter.kind, within, asClient), rows.list)
      },
    },

    'GET /external-jwt-signers': {
      query: paging,
      response: {
        data: clientSchemaOf(externalJwtSigner),
        page: true,
        envelope: 'listClientExternalJwtSignersEnvelope',
      },
      handle: (c) =>
        sendList(
          c,
          externalJwtSigner,
          readListRequest(c, externalJwtSigner.kind, undefined, asClient),
          signers.list,
        ),
    },

    'GET /services/{id}/terminators': {
      query: paging,
      response: {
        data: clientSchemaOf(terminator),
        page: true,
        envelope: 'listClientTerminatorsEnvelope',
      },
      handle: async (c, { id }) => {
        const ref = { kind: 'services', id }
        await policy.get({ ref, perspective: undefined }, callContext(c)) // 404 where it is not visible
        const within = Selection.fromPartial({ symbol: 'service', value: id })
        return sendList(c, terminator, readListRequest(c, terminator.kind, within, asClient), rows.list)
      },
    },
  }
}

const everyRouter = Selection.fromPartial({ roles: [{ roles: ['#all'], semantic: 'AnyOf' }] })

/** A client's list of services: identities that see the same share one answer. */
export function clientServices(services: Services, headers: Headers, lists: ServiceLists): Handlers {
  const { list: fetch, get } = services.entitiesOf('policy')
  const rows = services.entitiesOf('sessions')

  function answer(c: RequestContext, header: PolicyHeader): Response | Promise<Response> {
    const request = readListRequest(c, 'services', undefined, perspectiveOf(c))
    const key = lists.keyOf(header, sessionOf(c), request)
    const cached = lists.get(key)
    if (cached) return sendPrepared(c, cached)
    return sendList(c, service, request, fetch, (page, body) => {
      // A change during the read must not be cached under the key of the old header. The page may show it before the
      // notice of it arrives.
      if (page.contentKey === header.contentKey && headers.current(header)) lists.set(key, body)
    })
  }
  async function routersOfService(c: RequestContext, serviceId: string): Promise<ClientRouters> {
    const pairs = [{ identityId: sessionOf(c).identityId, serviceId }]
    const { routers } = await services.policy.getCommonRouters({ pairs }, callContext(c))
    const { json } = await services.sessions.describeRouters({ ids: routers[0]?.ids ?? [] }, callContext(c))
    return routersForClients(json.filter(({ length }) => length > 0).map(parse<ClientRouter>))
  }
  /** Not all routers of its service may carry it. */
  async function routersOfSession(c: RequestContext, id: string): Promise<ClientRouters> {
    const ref = { kind: session.kind, id }
    const { json } = await rows.get({ ref, perspective: undefined }, callContext(c))
    return parse<{ edgeRouters: ClientRouters }>(json).edgeRouters
  }
  return {
    'GET /services/{id}/edge-routers': {
      query: paging,
      headers: [
        { name: SESSION_TOKEN, type: 'string', description: 'The token of a session, which must exist' },
      ],
      response: { data: serviceEdgeRouters, envelope: 'listServiceEdgeRoutersEnvelope' },
      handle: async (c, { id }) => {
        const [token] = [c.env.incoming.headers[SESSION_TOKEN] ?? []].flat()
        const found = token
          ? await services.sessions.checkSessionToken({ token, serviceId: id }, callContext(c))
          : undefined
        await get({ ref: { kind: service.kind, id }, perspective: undefined }, callContext(c)) // 404 where it is not visible
        const routers = found ? await routersOfSession(c, found.sessionId) : await routersOfService(c, id)
        return sendData(c, { edgeRouters: routers?.map(({ urls: _, ...router }) => router) ?? null })
      },
    },
    'GET /services': {
      query: [...paging, ...byRole, ...service.listParameters],
      response: { data: readSchemaOf(service), page: true },
      handle: (c) => {
        const header = headers.of(sessionOf(c).identityId)
        return header instanceof Promise ? header.then((loaded) => answer(c, loaded)) : answer(c, header)
      },
    },
  }
}

/** wire: SDKs look in this way whether a session with a signed token still exists, and which routers serve it. */
const SESSION_TOKEN = 'session-token'

/** wire: `data` is an object with the list in `edgeRouters`, null if there is none. */
const serviceEdgeRouters = named(
  'serviceEdgeRouters',
  object({
    edgeRouters: orNull(listOf(named('commonEdgeRouterProperties', object(commonRouterMembers)))),
  }),
)

interface ClientRouter {
  readonly isOnline: boolean
  readonly urls?: unknown
}
type ClientRouters = readonly ClientRouter[] | null

const parse = <T>(json: Uint8Array): T => JSON.parse(Buffer.from(json).toString()) as T
