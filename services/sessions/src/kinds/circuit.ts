import { circuit, fabricLinksOf, fabricReference } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import { type Kind, kind, type Seams } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import type { Circuits } from '../circuits/circuits.js'

interface Joined {
  readonly routers: readonly { readonly id: string; readonly name: string | null }[] | null
  readonly serviceName: string | null
}

/** The circuits of all replicas. */
export const circuits = (control: Pick<Circuits, 'end'> | undefined): Kind =>
  kind<typeof circuit, Joined>(circuit, seams, {
    operations: () => ({
      async delete({ id }) {
        if (!(await control?.end(id))) throw new Fault('NOT_FOUND')
        return { id, position: undefined }
      },
    }),
  })

const seams: Seams<typeof circuit, Joined> = {
  joined: {
    routers: sql`
        (select json_agg(json_build_object('id', node.id, 'name', router.name) order by place)
           from unnest(router_ids) with ordinality as node (id, place) left join router on router.id = node.id)`,
    serviceName: sql`(select name from known_service where known_service.id = service)`,
  },
  view: async (_db, rows) =>
    rows.map(({ id, routers, linkIds, service, serviceName, terminator }) => ({
      _links: fabricLinksOf('circuits', id),
      path: {
        nodes: (routers ?? []).map((router) =>
          fabricReference('routers', router.id, router.name ?? undefined),
        ),
        links: (linkIds ?? []).map((linkId) => fabricReference('links', linkId, linkId)),
      },
      service: fabricReference('services', service, serviceName ?? '<deleted>'),
      terminator: fabricReference('terminators', terminator, terminator),
    })),
}
