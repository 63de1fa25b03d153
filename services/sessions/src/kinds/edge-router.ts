import type { edgeRouter } from '@overlay/model'
import { type Deleting, newId, type Seams } from '@overlay/platform/kind-store'
import type { Db, Tx } from '@overlay/platform/postgres'
import type { Context, EntityServiceService, Methods } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { endTerminators } from './terminator.js'

export type Pki = Pick<Methods<EntityServiceService>, 'view'>

/** What a router says of itself while it is connected. */
export interface Live {
  readonly hostname: string
  readonly supportedProtocols: Readonly<Record<string, string>>
  readonly syncStatus: string
  readonly versionInfo: object
}

const offline = {
  hostname: '',
  isOnline: false,
  supportedProtocols: {},
  syncStatus: 'SYNC_UNKNOWN',
  versionInfo: { arch: '', buildDate: '', os: '', revision: '', version: '' },
}

/** What is known of these routers' connections; those that are away are missing. */
export async function liveOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, Live>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<Live & { id: string }>(
    sql`
    select router_id as id, hostname, supported_protocols as "supportedProtocols",
           sync_status as "syncStatus", version_info as "versionInfo"
      from presence where router_id = any(${ids})`,
    'live-routers',
  )
  return new Map(rows.map(({ id, ...live }) => [id, live]))
}

/** Connection and enrollment, which are not columns of a router. */
export const edgeRouterSeams = (pki: Pki): Seams<typeof edgeRouter> => ({
  // clients see only routers that have enrolled
  scope: (_caller, perspective) => (perspective?.asClient ? sql`is_edge and is_verified` : sql`is_edge`),

  async writing(_tx, _next, before) {
    return before ? {} : { enrollmentId: newId('short') }
  },

  deleting: endOfRouter,

  async view(db, rows, { context }) {
    const live = await liveOf(
      db,
      rows.map(({ id }) => id),
    )
    const enrollments = await enrollmentsOf(pki, 'edge-routers', rows, context)
    return rows.map(({ id, fingerprint }) => {
      const here = live.get(id)
      return {
        ...offline,
        ...(here && { ...here, isOnline: true }),
        ...enrollments.get(id),
        fingerprint: fingerprint ?? undefined, // wire: left out, not null
      }
    })
  },
})

/** What hangs on a router of either kind goes with it. */
export async function endOfRouter(
  tx: Tx,
  { id }: { readonly id: string },
  { also }: Deleting,
): Promise<void> {
  for (const change of await endTerminators(tx, sql`router_id = ${id}`)) also(change)
}

/** Enrollment members of those that have not enrolled yet. */
export async function enrollmentsOf(
  pki: Pki,
  kind: string,
  rows: readonly { readonly id: string; readonly isVerified: boolean }[],
  context: Context,
): Promise<ReadonlyMap<string, object>> {
  const ids = rows.filter(({ isVerified }) => !isVerified).map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const { json } = await pki.view({ kind, ids }, context)
  return new Map(ids.map((id, i) => [id, membersIn(json[i])]))
}

const membersIn = (json: Uint8Array | undefined): object =>
  json && json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as object) : {}
