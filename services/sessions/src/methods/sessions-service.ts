import { edgeRouter, transitRouter } from '@overlay/model'
import type { ChangeLog, WaitForFollowers } from '@overlay/platform/change-log'
import { changeOf, columnsOf, newId, rowOf } from '@overlay/platform/kind-store'
import { onlyRow } from '@overlay/platform/postgres'
import { type Context, type Methods, notFound, type SessionsServiceService, type Written } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { describeRouters } from '../kinds/session.js'

interface Needs {
  readonly changeLog: ChangeLog
  readonly create: Methods<SessionsServiceService>['createSession']
  readonly settled: WaitForFollowers
}

export const sessionsService = ({ changeLog, create, settled }: Needs): Methods<SessionsServiceService> => ({
  createSession: create,

  async reEnrollEdgeRouter({ id }, context) {
    const fresh = sql`
      is_verified = false, fingerprint = null, cert_pem = null, enrollment_id = ${newId('short')}`
    const written = await changeRouter(changeLog, context, sql`id = ${id} and is_edge`, fresh)
    // differs: the original answers a server error
    if (!written) throw notFound('router', id)
    return settled(written, context)
  },

  // the enrollment that the router names, no other: one that was replaced meanwhile admits nobody
  async admitRouter({ routerId, enrollmentId, certPem, fingerprint }, context) {
    const verified = sql`is_verified = true, fingerprint = ${fingerprint}, cert_pem = ${certPem}`
    const which = sql`id = ${routerId} and enrollment_id = ${enrollmentId}`
    const written = await changeRouter(changeLog, context, which, verified)
    if (!written) throw notFound('router', routerId)
    return written
  },

  async describeRouters({ ids }) {
    const shown = await describeRouters(changeLog.db, ids)
    return {
      json: ids.map((id) => {
        const router = shown.get(id)
        return router ? Buffer.from(JSON.stringify(router)) : Buffer.alloc(0)
      }),
    }
  },

  // wire: never not found; who is not an admin sees what flows for its own sessions
  async getRoutePath({ id }, { caller: { identityId, isAdmin } }) {
    const { rows } = await changeLog.db.query<{ router_ids: string[] }>(sql`
      select router_ids from circuit
       where client_id = ${id}
         and (${isAdmin} or exists (select from session where session.id = client_id and identity_id = ${identityId}))
       order by circuit.id limit 1`)
    return { routerIds: rows[0]?.router_ids ?? [] }
  },
})

/** Of either kind. Undefined: there is no such router. */
async function changeRouter(
  changeLog: ChangeLog,
  context: Context,
  which: Sql,
  set: Sql,
): Promise<Written | undefined> {
  const { result, position } = await changeLog.write(context, async (tx) => {
    const found = await tx.query(sql`select ${columnsOf(edgeRouter)} from router where ${which} for update`)
    const [before] = found.rows
    if (!before) return { result: undefined, changes: [] }
    const id = String(before.id)
    const { rows } = await tx.query(sql`
      update router set ${set}, updated_at = clock_timestamp() where id = ${id}
   returning ${columnsOf(edgeRouter)}`)
    const sort = before.is_edge ? edgeRouter : transitRouter
    return { result: id, changes: [changeOf(sort, id, rowOf(sort, before), rowOf(sort, onlyRow(rows)))] }
  })
  return result === undefined ? undefined : { id: result, position }
}
