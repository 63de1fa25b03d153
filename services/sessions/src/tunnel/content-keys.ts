import { reconnect, withWatchdog } from '@overlay/platform/async'
import { type Methods, ownContext, type PolicyServiceService, type Positions } from '@overlay/rpc'
import type { Logger } from 'pino'

/** Keys of the service lists of identities. A poll of a router costs no call while its list does not change. */
export interface ContentKeys extends AsyncDisposable {
  /** Equal keys mean equal lists. */
  of(identityId: string): Promise<string>
  /** The identity has no router here any more. */
  forget(identityId: string): void
}

const SILENCE_MS = 5000
/** Policy sends a message each second. */
const FRESH_MS = 3000
const PAUSES = { firstMs: 250, longestMs: 2000 }
const CALL_MS = 5000

export function openContentKeys(
  policy: Pick<Methods<PolicyServiceService>, 'getHeader' | 'watchHeaders'>,
  log: Logger,
): ContentKeys {
  const stop = new AbortController()
  const keys = new Map<string, string>()
  let loading = new Set<string>() // of these, no change has been received since their load began
  let received: Positions = {}
  let heardAt = Number.NEGATIVE_INFINITY

  const dropAll = (): void => {
    keys.clear()
    loading = new Set()
  }
  const following = reconnect({
    ...PAUSES,
    signal: stop.signal,
    async connect({ works }) {
      let isFirst = true
      const open = (signal: AbortSignal) => policy.watchHeaders({ grants: false }, ownContext(signal))
      for await (const message of withWatchdog(SILENCE_MS, open, stop.signal)) {
        if (isFirst || message.all) dropAll() // changes may have been missed
        isFirst = false
        for (const id of message.identityIds) {
          keys.delete(id)
          loading.delete(id)
        }
        received = message.positions
        heardAt = performance.now()
        works()
      }
      throw new Error('policy ended the stream')
    },
    onOutage: (err) => log.warn({ err }, 'changes of service lists not received'),
  })

  return {
    async of(identityId) {
      const cached = keys.get(identityId)
      if (cached !== undefined && performance.now() - heardAt < FRESH_MS) return cached
      loading.add(identityId)
      const least = received
      const context = { ...ownContext(AbortSignal.timeout(CALL_MS)), positions: least }
      const { contentKey, positions } = await policy.getHeader({ identityId }, context)
      if (loading.delete(identityId) && includes(positions, least)) keys.set(identityId, contentKey)
      return contentKey
    },
    forget(identityId) {
      keys.delete(identityId)
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await following
    },
  }
}

/** A replica that is behind the stream may answer. */
const includes = (positions: Positions, least: Positions): boolean =>
  Object.entries(least).every(([schema, { timeline, number }]) => {
    const position = positions[schema]
    return position?.timeline === timeline && position.number >= number
  })
