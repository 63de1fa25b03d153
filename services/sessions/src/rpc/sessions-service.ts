import { edgeRouter } from '@overlay/model'
import { columnsOf, type History, onlyRow, plainOf, rowOf, type Tx } from '@overlay/platform'
import {
  type Context,
  type EnrollmentWish,
  type Methods,
  notFound,
  type SessionsServiceService,
  type Written,
} from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { describeRouters } from '../store/session.js'

interface Needs {
  readonly history: History
  readonly create: Methods<SessionsServiceService>['createSession']
  /** Makes the enrollment that a router needs to come in, in place of those before. */
  enroll(routerId: string, context: Context): Promise<void>
}

export const sessionsService = ({ history, create, enroll }: Needs): Methods<SessionsServiceService> => ({
  createSession: create,

  async reEnrollEdgeRouter({ id }, context) {
    const written = await changeRouter(
      history,
      context,
      id,
      sql`is_verified = false, fingerprint = null, cert_pem = null`,
    )
    await enroll(id, context)
    return written
  },

  async admitRouter({ routerId, certPem, fingerprint }, context) {
    return changeRouter(
      history,
      context,
      routerId,
      sql`is_verified = true, fingerprint = ${fingerprint}, cert_pem = ${certPem}`,
    )
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

async function changeRouter(history: History, context: Context, id: string, set: Sql): Promise<Written> {
  const { position } = await history.write(context, async (tx) => {
    const before = await lockedRouter(tx, id)
    const { rows } = await tx.query(sql`
      update router set ${set}, updated_at = clock_timestamp() where id = ${id}
   returning ${columnsOf(edgeRouter)}`)
    const told = plainOf(edgeRouter, rowOf(edgeRouter, onlyRow(rows)))
    return { result: undefined, changes: [{ kind: 'edge-routers', id, before, after: told, told }] }
  })
  return { id, position }
}

async function lockedRouter(tx: Tx, id: string): Promise<object> {
  const { rows } = await tx.query(sql`
    select ${columnsOf(edgeRouter)} from router where id = ${id} and is_edge for update`)
  // differs: the original answers a server error
  if (!rows[0]) throw notFound('edgeRouter', id)
  return plainOf(edgeRouter, rowOf(edgeRouter, rows[0]))
}

/** What a router needs to enroll. */
export const routerWish = (edgeRouterId: string): EnrollmentWish => ({
  id: '',
  token: '',
  method: 'erott',
  identityId: '',
  edgeRouterId,
  transitRouterId: '',
  caId: '',
  username: '',
  expiresAtMs: 0,
})
