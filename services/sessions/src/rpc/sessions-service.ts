import { edgeRouter } from '@overlay/model'
import { columnsOf, type History, newId, onlyRow, plainOf, rowOf, type Settled } from '@overlay/platform'
import { type Context, type Methods, notFound, type SessionsServiceService, type Written } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { describeRouters } from '../store/session.js'

interface Needs {
  readonly history: History
  readonly create: Methods<SessionsServiceService>['createSession']
  readonly settled: Settled
}

export const sessionsService = ({ history, create, settled }: Needs): Methods<SessionsServiceService> => ({
  createSession: create,

  async reEnrollEdgeRouter({ id }, context) {
    const fresh = sql`
      is_verified = false, fingerprint = null, cert_pem = null, enrollment_id = ${newId('short')}`
    const written = await changeRouter(history, context, id, fresh)
    // differs: the original answers a server error
    if (!written) throw notFound('edgeRouter', id)
    return settled(written, context)
  },

  // the enrollment that the router names, no other: one that was replaced meanwhile admits nobody
  async admitRouter({ routerId, enrollmentId, certPem, fingerprint }, context) {
    const verified = sql`is_verified = true, fingerprint = ${fingerprint}, cert_pem = ${certPem}`
    const which = sql`enrollment_id = ${enrollmentId}`
    const written = await changeRouter(history, context, routerId, verified, which)
    if (!written) throw notFound('edgeRouter', routerId)
    return written
  },

  async describeRouters({ ids }) {
    const shown = await describeRouters(history.db, ids)
    return {
      json: ids.map((id) => {
        const router = shown.get(id)
        return router ? Buffer.from(JSON.stringify(router)) : Buffer.alloc(0)
      }),
    }
  },
})

/** Undefined: there is no such router. */
async function changeRouter(
  history: History,
  context: Context,
  id: string,
  set: Sql,
  which: Sql = sql`true`,
): Promise<Written | undefined> {
  const { result, position } = await history.write(context, async (tx) => {
    const found = await tx.query(sql`
      select ${columnsOf(edgeRouter)} from router where id = ${id} and is_edge and ${which} for update`)
    if (!found.rows[0]) return { result: false, changes: [] }
    const before = plainOf(edgeRouter, rowOf(edgeRouter, found.rows[0]))
    const { rows } = await tx.query(sql`
      update router set ${set}, updated_at = clock_timestamp() where id = ${id}
   returning ${columnsOf(edgeRouter)}`)
    const told = plainOf(edgeRouter, rowOf(edgeRouter, onlyRow(rows)))
    return { result: true, changes: [{ kind: 'edge-routers', id, before, after: told, told }] }
  })
  return result ? { id, position } : undefined
}
