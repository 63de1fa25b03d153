import type { RouterEnrollment } from '@overlay/model'
import type { Context } from '@overlay/rpc'
import type { WaitForFollowers } from '@overlay/store/change-log'
import { type DeleteContext, decodeView, type KindOperations, type Viewer } from '@overlay/store/kind-store'
import type { Db, Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { endTerminators } from '../store/terminator.js'
import type { RouterNames } from './reserved-names.js'

/** Of both kinds of routers. */
export interface RouterDeps {
  readonly db: Db
  readonly identity: RouterNames
  readonly pki: Viewer
  readonly waitForFollowers: WaitForFollowers
}

type Writes = Pick<KindOperations, 'create' | 'update' | 'delete'>

/** Writes wait for followers: pki makes the enrollment, identity and policy what a tunneling router needs. */
export const routerWrites = (uniform: KindOperations, waitForFollowers: WaitForFollowers): Writes => ({
  create: async (request, context) => waitForFollowers(await uniform.create(request, context), context),
  update: async (request, context) => waitForFollowers(await uniform.update(request, context), context),
  delete: async (request, context) => waitForFollowers(await uniform.delete(request, context), context),
})

/** Terminators end with their router. */
export async function deleteTerminators(
  tx: Tx,
  { id }: { readonly id: string },
  { also }: DeleteContext,
): Promise<void> {
  for (const change of await endTerminators(tx, sql`router_id = ${id}`)) also(change)
}

/** Members of the enrollments of routers that have not enrolled. */
export async function enrollmentMembers(
  pki: Viewer,
  kind: string,
  routers: readonly { readonly id: string; readonly isVerified: boolean }[],
  context: Context,
): Promise<ReadonlyMap<string, RouterEnrollment>> {
  const ids = routers.filter(({ isVerified }) => !isVerified).map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const { json } = await pki.view({ kind, ids }, context)
  return new Map(ids.map((id, i) => [id, decodeView<RouterEnrollment>(json[i]) ?? {}]))
}
