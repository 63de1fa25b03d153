import { edgeRouter, readSchemaOf, transitRouter } from '@overlay/model'
import { flag, object } from '@overlay/model/schema'
import { Fault, type ListRequest, Perspective, Selection } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { sendCreated, sendData, sendEmpty } from '../http/envelope.js'
import { acceptBody, type Endpoint, type Handler, type RequestContext } from '../http/exchange.js'
import { type EntityBody, entityBody } from './entity-body.js'
import { type FabricView, fabricViews } from './fabric-views.js'
import type { Handlers } from './operations.js'
import { paging, readListRequest, sendList } from './send-list.js'

const asFabric = Perspective.fromPartial({ asFabric: true })

/** The collections of the fabric API. operations.ts says which of these operations exist. */
export const fabricCollections = (services: Services): Handlers =>
  Object.assign({}, ...fabricViews.map((view) => collection(view, services)))

function collection(view: FabricView, services: Services): Handlers {
  const { path, of, shape, terminatorsBy } = view
  const rows = services.entitiesOf(of.owner)
  const data = readSchemaOf(shape)

  const pageOf = (c: RequestContext, shown: FabricView, within?: Selection): Response | Promise<Response> => {
    const entities = services.entitiesOf(shown.of.owner)
    const fetch = async (request: ListRequest, context: Parameters<typeof entities.list>[1]) => {
      const page = await entities.list(request, context)
      const listed = JSON.parse(page.rows.toString()) as Parameters<FabricView['show']>[0][]
      return { ...page, rows: Buffer.from(JSON.stringify(listed.map(shown.show))) }
    }
    return sendList(c, shown.of, readListRequest(c, shown.of.kind, within, asFabric), fetch)
  }

  const update = async (c: RequestContext, id: string, body: EntityBody): Promise<Response> => {
    const request = { ref: { kind: of.kind, id }, ...storedBody(view, body) }
    if (of === transitRouter) await updateRouter(c, id, request)
    else await rows.update(request, callContext(c))
    return sendEmpty(c)
  }

  /** wire: here edge routers are routers like others. */
  const updateRouter = async (c: RequestContext, id: string, request: EntityBody): Promise<void> => {
    try {
      await rows.update({ ...request, ref: { kind: edgeRouter.kind, id } }, callContext(c))
    } catch (err) {
      if (!(err instanceof Fault) || err.code !== 'NOT_FOUND') throw err
      await rows.update({ ...request, ref: { kind: of.kind, id } }, callContext(c))
    }
  }

  const routes: Record<string, Handler | Endpoint> = {
    [`GET /${path}`]: { query: paging, response: { data, page: true }, handle: (c) => pageOf(c, view) },
    [`POST /${path}`]: acceptBody(
      entityBody(shape, 'create'),
      async (c, _, body) => {
        const { id, ...members } = JSON.parse(storedBody(view, body).json.toString()) as { id?: string }
        const request = { kind: of.kind, json: jsonBytes(members), ...(id !== undefined && { id }) }
        return sendCreated(c, path, (await rows.create(request, callContext(c))).id)
      },
      { response: { status: 201 } },
    ),
    [`GET /${path}/{id}`]: {
      response: { data },
      handle: async (c, { id }) => {
        const found = await rows.get({ ref: { kind: of.kind, id }, perspective: asFabric }, callContext(c))
        return sendData(c, view.show(JSON.parse(found.json.toString())))
      },
    },
    [`PUT /${path}/{id}`]: acceptBody(entityBody(shape, 'replace'), (c, { id }, body) => update(c, id, body)),
    [`PATCH /${path}/{id}`]: acceptBody(entityBody(shape, 'patch'), (c, { id }, body) => update(c, id, body)),
    [`DELETE /${path}/{id}`]: acceptBody(ignored, async (c, { id }) => {
      await rows.delete({ kind: of.kind, id }, callContext(c))
      return sendEmpty(c)
    }),
  }
  if (terminatorsBy !== undefined && terminators)
    routes[`GET /${path}/{id}/terminators`] = {
      query: paging,
      response: { data: readSchemaOf(terminators.shape), page: true },
      handle: (c, { id }) =>
        pageOf(c, terminators, Selection.fromPartial({ symbol: terminatorsBy, value: id })),
    }
  return routes
}

const terminators = fabricViews.find(({ path }) => path === 'terminators')

/** wire: the original's command line sends this with each delete. */
const ignored = json('options', object({}, { immediate: flag }), false)

/** The body with the members of the kind. */
function storedBody({ renamed = {} }: FabricView, { json, mask }: EntityBody): EntityBody {
  const storedNames = new Map(Object.entries(renamed).map(([stored, here]) => [here, stored]))
  const storedName = (name: string): string => storedNames.get(name) ?? name
  const members = Object.entries(JSON.parse(json.toString()) as object)
  return {
    json: jsonBytes(Object.fromEntries(members.map(([name, value]) => [storedName(name), value]))),
    mask: mask.map(storedName),
  }
}
