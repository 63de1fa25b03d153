import { type Context, Fault } from '@overlay/rpc'
import type { Entities } from '../clients/services.js'

export type RouterLists = Pick<Entities, 'list'>

/** Enrolled edge routers that are not disabled and not connected. */
export interface OfflineRouters {
  readonly total: number
  /** The first ones by name. */
  readonly names: readonly string[]
}

const query = {
  filter: 'online = false and disabled = false and isVerified = true',
  sort: 'name asc',
  limit: '50',
  offset: '',
  roleFilter: [],
  roleSemantic: '',
  after: Buffer.alloc(0),
}
const request = { kind: 'edge-routers', query, within: undefined, perspective: undefined }

/** Undefined: their owner does not answer. */
export async function offlineRouters(
  { list }: RouterLists,
  context: Context,
): Promise<OfflineRouters | undefined> {
  try {
    const { rows, total } = await list(request, context)
    const routers = JSON.parse(rows.toString()) as readonly { readonly name: string }[]
    return { total, names: routers.map(({ name }) => name) }
  } catch (err) {
    if (err instanceof Fault && (err.code === 'UNAVAILABLE' || err.code === 'TIMEOUT')) return undefined
    throw err
  }
}
