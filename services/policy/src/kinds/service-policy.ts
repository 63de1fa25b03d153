import type { edgeRouterPolicy, servicePolicy } from '@overlay/model'
import type { Seams } from '@overlay/platform/kind-store'
import { type Context, Fault, invalid } from '@overlay/rpc'
import { namesLinkedSets, withoutLinkedSets } from '../domain/linked-sets.js'
import type { State } from '../domain/state.js'

/** `current` waits until the state is as new as the reader may expect. */
export const servicePolicySeams = (
  state: State,
  current: (context: Context) => Promise<void>,
): Seams<typeof servicePolicy> => ({
  async filter(filter, context) {
    if (!namesLinkedSets(filter)) return filter
    await current(context)
    const said = withoutLinkedSets(state, filter)
    if (!said) throw new Fault('INVALID_FILTER', 'unsupported operation on identities or services')
    return said
  },

  async writing(_tx, { type }) {
    // wire: the documents know this word, and it is refused under another name than the member's
    if (type === 'Invalid')
      throw invalid('policyType', "invalid policy type. valid types are 'Dial' and 'Bind'", type)
    return {}
  },
})

export const edgeRouterPolicySeams: Seams<typeof edgeRouterPolicy> = {
  view: async (_db, rows) => rows.map(({ isSystem }) => ({ isSystem })),
}
