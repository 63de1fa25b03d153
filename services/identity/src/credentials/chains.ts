import type { X509Certificate } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fairQueue } from '@overlay/process/async'
import { type Context, retryAfter, sourceOf } from '@overlay/rpc'
import { type ChainWork, chainOf } from '../domain/chain.js'
import { CHAIN_FAILURES, CHAIN_PERIOD_MS, CHAINS_WAITING } from '../limits.js'

/** Builds the chains of all clients that present certificates. */
export interface Chains {
  /**
   * As `chainOf`. The chain of a leaf whose issuer is trusted is found at once. Other leaves need further certificates:
   * these chains are built one after the other, other work of the process runs in between, and sources take turns.
   * @throws Fault SERVER_TOO_MANY_REQUESTS
   */
  find(
    presented: readonly X509Certificate[],
    trusted: readonly X509Certificate[],
    context: Pick<Context, 'sourceAddress' | 'signal'>,
    now: Date,
  ): Promise<readonly X509Certificate[] | undefined>
}

export function openChains(): Chains {
  const queue = fairQueue({ name: 'certificate chains', running: 1, waiting: CHAINS_WAITING })
  const failures = new Map<string, number>()

  function noteFailure(source: string): void {
    if (failures.size === 0) setTimeout(() => failures.clear(), CHAIN_PERIOD_MS).unref()
    failures.set(source, (failures.get(source) ?? 0) + 1)
  }
  return {
    async find(presented, trusted, { sourceAddress, signal }, now) {
      const direct = chainOf(presented.slice(0, 1), trusted, now)
      if (direct || presented.length <= 1 || trusted.length === 0) return direct
      const source = sourceOf(sourceAddress)
      return queue(
        { source, name: '' },
        async () => {
          if ((failures.get(source) ?? 0) >= CHAIN_FAILURES) throw retryAfter(CHAIN_PERIOD_MS / 1000)
          await nextTurn()
          const work: ChainWork = { signatures: 0 }
          const chain = chainOf(presented, trusted, now, work)
          if (!chain && work.signatures > 0) noteFailure(source)
          return chain
        },
        signal,
      )
    },
  }
}
