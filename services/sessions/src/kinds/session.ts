import { type RowOf, referenceTo, routersForClients, servicePolicy, session } from '@overlay/model'
import { yielder } from '@overlay/process/async'
import type { Context, Methods, PolicyServiceService } from '@overlay/rpc'
import { type Kind, kind, type Names } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import type { ClientRouter } from '../domain/client-router.js'
import type { ClientRouterList } from '../routers/client-routers.js'
import { type ClientRouters, clientRoutersOf } from '../store/router.js'
import type { ClientToken } from '../tokens/client-tokens.js'

type Policy = Pick<Methods<PolicyServiceService>, 'getCommonRouters'>

/** wire: admins see all, other callers the sessions of their identity, of any of its API sessions. */
export const sessions = (
  policy: Policy,
  names: Names,
  clientToken: ClientToken,
  evaluating: ClientRouterList['evaluating'],
): Kind =>
  kind(session, {
    scope: ({ isAdmin, identityId }) => (isAdmin ? sql`true` : sql`identity_id = ${identityId}`),

    async view(db, rows, { context }) {
      const common = await commonRouters(policy, rows, context)
      const routerIds = rows.map(({ postureAtRouters }, i) =>
        postureAtRouters ? evaluating(common[i] ?? []) : (common[i] ?? []),
      )
      const routers = await clientRoutersOf(db, [...new Set(routerIds.flat())])
      const policyIds = new Set(rows.flatMap(({ servicePolicies }) => servicePolicies ?? []))
      const policyNames = await names(servicePolicy.kind, [...policyIds], context)
      const exists = (id: string) => policyNames.has(id)
      const yieldNow = yielder()
      const tokens: string[] = []
      for (const [i, row] of rows.entries()) {
        tokens.push(await clientToken(row, routerIds[i] ?? []))
        await yieldNow()
      }
      return rows.map((row, i) => ({
        ...wireMembers(row),
        token: tokens[i] ?? row.token,
        edgeRouters: edgeRoutersOf(routerIds[i] ?? [], routers),
        // wire: an empty list, not null; deleted policies are left out
        servicePolicies: (row.servicePolicies ?? [])
          .filter(exists)
          .map((id) => referenceTo(servicePolicy, id, policyNames.get(id))),
      }))
    },
  })

/** Members that do not follow from the columns alone. */
export function wireMembers({ id }: Pick<RowOf<typeof session>, 'id'>) {
  return {
    _links: { 'route-path': { href: `./sessions/${id}/route-path` }, self: { href: `./sessions/${id}` } },
  }
}

export const edgeRoutersOf = (
  ids: readonly string[],
  routers: ClientRouters,
): readonly ClientRouter[] | null => routersForClients(ids.flatMap((id) => routers.get(id) ?? []))

async function commonRouters(
  policy: Policy,
  rows: readonly RowOf<typeof session>[],
  context: Context,
): Promise<readonly (readonly string[])[]> {
  if (rows.length === 0) return []
  const pairs = rows.map(({ identityId, serviceId }) => ({ identityId, serviceId }))
  const { routers } = await policy.getCommonRouters({ pairs }, context)
  return routers.map(({ ids }) => ids)
}
