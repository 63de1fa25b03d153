import { type RowOf, referenceTo, servicePolicy, type session } from '@overlay/model'
import type { Names, Seams } from '@overlay/platform/kind-store'
import { batch, type Db } from '@overlay/platform/postgres'
import type { Context, Methods, PolicyServiceService } from '@overlay/rpc'
import sql from 'sql-template-tag'

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

/** By id. */
export type ShownRouters = ReadonlyMap<string, ShownRouter>

/** A router, and its connection while it has one. */
interface Described {
  readonly id: string
  readonly isOnline: boolean
  readonly hostname: string | null
  readonly supportedProtocols: Readonly<Record<string, string>> | null
  readonly syncStatus: string | null
}

/** Routers as sessions and services show them to clients. */
export async function describeRouters(db: Db, ids: readonly string[]): Promise<ShownRouters> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<Described>(
    sql`
    select id, name, cost, no_traversal as "noTraversal", disabled, router_id is not null as "isOnline", hostname,
           supported_protocols as "supportedProtocols", sync_status as "syncStatus"
      from router left join presence on router_id = id
     where id = any(${ids}) and is_edge`,
    'describe-routers',
  )
  return new Map(rows.map(({ id, ...router }) => [id, shownRouter(router)]))
}

/** The same for many at once: those who ask while a look is under way share the next one. */
export const routerDescriber = (db: Db) =>
  batch<readonly string[], ShownRouters>(async (asked) => {
    const all = await describeRouters(db, [...new Set(asked.flat())])
    return asked.map(() => all)
  })

function shownRouter({
  hostname,
  supportedProtocols,
  syncStatus,
  ...router
}: Omit<Described, 'id'>): ShownRouter {
  const protocols = supportedProtocols ?? {}
  return {
    ...router,
    hostname: hostname ?? '',
    syncStatus: syncStatus ?? 'SYNC_UNKNOWN',
    supportedProtocols: protocols,
    urls: protocols, // wire: older SDKs read this one
  }
}

/** wire: connected ones first; null when there is none. */
export function routerList(ids: readonly string[], shown: ShownRouters): ShownRouter[] | null {
  const known = ids.flatMap((id) => shown.get(id) ?? [])
  const sorted = known.sort((a, b) => Number(b.isOnline) - Number(a.isOnline)).slice(0, limit)
  return sorted.length > 0 ? sorted : null
}
