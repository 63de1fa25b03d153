import { type RowOf, referenceTo, servicePolicy, type session } from '@overlay/model'
import type { Db, Names, Seams } from '@overlay/platform'
import type { Context, Methods, PolicyServiceService } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { type Live, liveOf } from './edge-router.js'

type Policy = Pick<Methods<PolicyServiceService>, 'getCommonRouters'>

/** wire: a client is told of this many routers. */
const limit = 25

/** wire: admins see all, others the sessions of their identity, whichever API session made them. */
export const sessionSeams = (policy: Policy, names: Names): Seams<typeof session> => ({
  scope: ({ isAdmin, identityId }) => (isAdmin ? sql`true` : sql`identity_id = ${identityId}`),

  async view(db, rows, { context }) {
    const routers = await commonRoutersOf(policy, rows, context)
    const shown = await describeRouters(db, [...new Set(routers.flat())])
    const policyIds = new Set(rows.flatMap(({ servicePolicies }) => servicePolicies ?? []))
    const policyNames = await names(servicePolicy.kind, [...policyIds], context)
    const named = (id: string) => policyNames.has(id)
    return rows.map((row, i) => ({
      ...wireMembers(row),
      edgeRouters: routerList(routers[i] ?? [], shown),
      // wire: never null; a policy that is gone is left out
      servicePolicies: (row.servicePolicies ?? [])
        .filter(named)
        .map((id) => referenceTo(servicePolicy, id, policyNames.get(id))),
    }))
  },
})

/** Members that do not follow from the columns alone. */
export function wireMembers({ id }: Pick<RowOf<typeof session>, 'id'>): object {
  return {
    _links: { 'route-path': { href: `./sessions/${id}/route-path` }, self: { href: `./sessions/${id}` } },
  }
}

async function commonRoutersOf(
  policy: Policy,
  rows: readonly RowOf<typeof session>[],
  context: Context,
): Promise<readonly (readonly string[])[]> {
  if (rows.length === 0) return []
  const pairs = rows.map(({ identityId, serviceId }) => ({ identityId, serviceId }))
  const { routers } = await policy.getCommonRouters({ pairs }, context)
  return routers.map(({ ids }) => ids)
}

export interface ShownRouter {
  readonly isOnline: boolean
  readonly [member: string]: unknown
}

/** Routers as sessions and services show them to clients. */
export async function describeRouters(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ShownRouter>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<{ id: string; name: string }>(
    sql`
    select id, name, cost, no_traversal as "noTraversal", disabled from router where id = any(${ids}) and is_edge`,
    'describe-routers',
  )
  const live = await liveOf(db, ids)
  return new Map(rows.map(({ id, ...stored }) => [id, { ...stored, ...connection(live.get(id)) }]))
}

function connection(live: Live | undefined): ShownRouter {
  const protocols = live?.supportedProtocols ?? {}
  return {
    hostname: live?.hostname ?? '',
    isOnline: live !== undefined,
    syncStatus: live?.syncStatus ?? 'SYNC_UNKNOWN',
    supportedProtocols: protocols,
    urls: protocols, // wire: older SDKs read this one
  }
}

/** wire: connected ones first; null when there is none. */
export function routerList(
  ids: readonly string[],
  shown: ReadonlyMap<string, ShownRouter>,
): ShownRouter[] | null {
  const known = ids.flatMap((id) => shown.get(id) ?? [])
  const sorted = known.sort((a, b) => Number(b.isOnline) - Number(a.isOnline)).slice(0, limit)
  return sorted.length > 0 ? sorted : null
}
