import type { Db } from '@overlay/platform/postgres'
import type { Caller } from '@overlay/rpc'
import sql from 'sql-template-tag'

/** The routers of a circuit of the session, in order. None if the caller may not see the session. */
export async function routePath(
  db: Db,
  sessionId: string,
  { identityId, isAdmin }: Pick<Caller, 'identityId' | 'isAdmin'>,
): Promise<string[]> {
  const { rows } = await db.query<{ router_ids: string[] }>(sql`
      select router_ids from circuit
       where client_id = ${sessionId}
         and (${isAdmin} or exists (select from session where session.id = client_id and identity_id = ${identityId}))
       order by circuit.id limit 1`)
  return rows[0]?.router_ids ?? []
}
