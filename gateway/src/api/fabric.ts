import { transitRouter } from '@overlay/model'
import type { Services } from '../clients/services.js'
import type { RequestContext } from '../http/request-context.js'
import { send } from '../http/send.js'
import { type List, list, listRequest, paging } from './list.js'
import type { Handlers } from './operations.js'

interface Router {
  readonly id: string
  readonly isOnline: boolean
  readonly [member: string]: unknown
}

/** The part of the fabric API that the web console needs: its map reads edge and transit routers only there. */
export function fabricLists({ entitiesOf }: Services): Handlers {
  const { kind, owner } = transitRouter
  const routers: List = async (request, context) => {
    const page = await entitiesOf(owner).list(request, context)
    const rows = JSON.parse(page.rows.toString()) as readonly Router[]
    return { ...page, rows: Buffer.from(JSON.stringify(rows.map(fabricRouter))) }
  }
  return {
    'GET /circuits': nothing,
    'GET /links': nothing,
    'GET /routers': {
      query: paging,
      handle: (c) => list(c, transitRouter, listRequest(c, kind), routers),
    },
  }
}

const fabricRouter = ({ id, isOnline, ...router }: Router) => ({
  _links: { self: { href: `./routers/${id}` }, terminators: { href: `./routers/${id}/terminators` } },
  id,
  createdAt: router.createdAt,
  updatedAt: router.updatedAt,
  tags: router.tags,
  connected: isOnline,
  cost: router.cost,
  disabled: router.disabled,
  fingerprint: router.fingerprint,
  listenerAddresses: null,
  name: router.name,
  noTraversal: router.noTraversal,
})

/** Routers cannot connect yet: there are neither links nor circuits. */
const nothing = (c: RequestContext) =>
  send(c, 200, '{"data":[],"meta":{"pagination":{"limit":10,"offset":0,"totalCount":0}}}')
