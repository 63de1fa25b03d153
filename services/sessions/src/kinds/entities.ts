import { edgeRouter, terminator, transitRouter } from '@overlay/model'
import type { Consumer, WaitForFollowers } from '@overlay/platform/change-log'
import { bestEffort, type Db } from '@overlay/platform/postgres'
import type { EntityServiceService, ListQuery, Methods } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { viewsOf } from './identity.js'

type Entities = Methods<EntityServiceService>

export interface Needs {
  readonly db: Db
  /** The names of services travel in the changes of policy. */
  readonly policyFollowed: Pick<Consumer, 'catchUp'>
  readonly settled: WaitForFollowers
}

const WAIT_MS = 2000

/**
 * The uniform operations. Others follow routers: pki makes their enrollments, identity and policy what a tunneling
 * router needs.
 */
export function entities(uniform: Entities, { db, policyFollowed, settled }: Needs): Entities {
  return {
    ...uniform,

    view: viewsOf(db, uniform.view),

    async list(request, context) {
      if (request.kind === terminator.kind && namesServices(request.query)) {
        const signal = AbortSignal.any([context.signal, AbortSignal.timeout(WAIT_MS)])
        await bestEffort('policy', policyFollowed.catchUp(signal))
      }
      return uniform.list(request, context)
    },

    async create(request, context) {
      const written = await uniform.create(request, context)
      return isOfRouters(request.kind) ? settled(written, context) : written
    },

    async update(request, context) {
      const written = await uniform.update(request, context)
      return isOfRouters(request.ref?.kind) ? settled(written, context) : written
    },

    async delete(request, context) {
      const { kind, id } = request
      if (!isOfRouters(kind)) return uniform.delete(request, context)
      // a router of the edge goes as what it is, whatever it is called here
      const isEdge = kind === transitRouter.kind && (await isOfEdge(db, id))
      return settled(await uniform.delete({ id, kind: isEdge ? edgeRouter.kind : kind }, context), context)
    },
  }
}

const isOfRouters = (kind: string | undefined): boolean =>
  kind === edgeRouter.kind || kind === transitRouter.kind

async function isOfEdge(db: Db, id: string): Promise<boolean> {
  const { rowCount } = await db.query(sql`select from router where id = ${id} and is_edge`)
  return rowCount === 1
}

const namesServices = (query: ListQuery | undefined): boolean =>
  `${query?.filter} ${query?.sort}`.includes('service.name')
