import { clientSchemaOf, edgeRouter, externalJwtSigner, terminator } from '@overlay/model'
import { Perspective, Selection } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { callContext } from '../http/calls.js'
import type { RequestContext } from '../http/exchange.js'
import { byRole, list, listRequest, paging } from './list.js'
import type { Handlers } from './operations.js'
import { sessionOf } from './session.js'

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
      about: { data: clientSchemaOf(edgeRouter), page: true },
      handle: async (c) => {
        const within = await routersOf(c)
        return list(c, edgeRouter, listRequest(c, edgeRouter.kind, within, asClient), rows.list)
      },
    },

    'GET /external-jwt-signers': {
      query: paging,
      about: {
        data: clientSchemaOf(externalJwtSigner),
        page: true,
        envelope: 'listClientExternalJwtSignersEnvelope',
      },
      handle: (c) =>
        list(c, externalJwtSigner, listRequest(c, externalJwtSigner.kind, undefined, asClient), signers.list),
    },

    'GET /services/{id}/terminators': {
      query: paging,
      about: {
        data: clientSchemaOf(terminator),
        page: true,
        envelope: 'listClientTerminatorsEnvelope',
      },
      handle: async (c, { id }) => {
        const ref = { kind: 'services', id }
        await policy.get({ ref, perspective: undefined }, callContext(c)) // 404 where it is not visible
        const within = Selection.fromPartial({ symbol: 'service', value: id })
        return list(c, terminator, listRequest(c, terminator.kind, within, asClient), rows.list)
      },
    },
  }
}

const everyRouter = Selection.fromPartial({ roles: [{ roles: ['#all'], semantic: 'AnyOf' }] })
