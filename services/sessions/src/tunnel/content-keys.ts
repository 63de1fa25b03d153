import { type Methods, ownContext, type PolicyServiceService } from '@overlay/rpc'
import { isAtLeast } from '@overlay/store/change-log'
import type { GrantWatch } from '../grants/watch-grants.js'

/** Keys of the service lists of identities. A poll of a router costs no call while its list does not change. */
export interface ContentKeys {
  /** Equal keys mean equal lists. */
  of(identityId: string): Promise<string>
  /** The identity has no router here any more. */
  forget(identityId: string): void
}

const CALL_MS = 5000

export function openContentKeys(
  policy: Pick<Methods<PolicyServiceService>, 'getHeader'>,
  watch: Pick<GrantWatch, 'isFresh' | 'positions' | 'onChange'>,
): ContentKeys {
  const keys = new Map<string, string>()
  let loading = new Set<string>() // of these, no change has been received since their load began

  watch.onChange((ids) => {
    if (ids === 'all') {
      keys.clear()
      loading = new Set()
      return
    }
    for (const id of ids) {
      keys.delete(id)
      loading.delete(id)
    }
  })
  return {
    async of(identityId) {
      const cached = keys.get(identityId)
      if (cached !== undefined && watch.isFresh()) return cached
      loading.add(identityId)
      const least = watch.positions()
      const context = { ...ownContext(AbortSignal.timeout(CALL_MS)), positions: least }
      const { contentKey, positions } = await policy.getHeader({ identityId }, context)
      // a replica that is behind the stream may answer
      const isCurrent = Object.entries(least).every(([schema, at]) => isAtLeast(positions[schema], at))
      if (loading.delete(identityId) && isCurrent) keys.set(identityId, contentKey)
      return contentKey
    },
    forget: (identityId) => void keys.delete(identityId),
  }
}
