import { identity } from '@overlay/model'
import type { ForeignKind, ForeignViews } from '@overlay/store/kind-store'
import { connectedIdentities } from '../store/identity-connection.js'

/** Asked by replicas of identity of the previous release. They have no rows of their own about connections. */
export const foreign: Readonly<Record<string, ForeignKind>> = {
  [identity.kind]: {
    async view(db, ids): Promise<ForeignViews<typeof identity>> {
      const connected = await connectedIdentities(db, ids)
      return ids.map((id) => (connected.has(id) ? { hasEdgeRouterConnection: true } : undefined))
    },
  },
}
