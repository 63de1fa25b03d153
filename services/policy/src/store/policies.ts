import type { edgeRouterPolicy, servicePolicy } from '@overlay/model'
import type { Seams } from '@overlay/platform'
import { invalid } from '@overlay/rpc'

export const servicePolicySeams: Seams<typeof servicePolicy> = {
  async writing(_tx, { type }) {
    // wire: the documents know this word, and it is refused under another name than the member's
    if (type === 'Invalid')
      throw invalid('policyType', "invalid policy type. valid types are 'Dial' and 'Bind'", type)
    return {}
  },
}

export const edgeRouterPolicySeams: Seams<typeof edgeRouterPolicy> = {
  view: async (_db, rows) => rows.map(({ isSystem }) => ({ isSystem })),
}
