import { edgeRouterPolicy } from '@overlay/model'
import { kind } from '@overlay/store/kind-store'

export const edgeRouterPolicies = kind(edgeRouterPolicy, {
  view: async (_db, rows) => rows.map(({ isSystem }) => ({ isSystem })),
})
