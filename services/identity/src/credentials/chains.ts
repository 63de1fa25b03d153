import type { X509Certificate } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fairQueue } from '@overlay/process/async'
import { type Context, retryAfter, sourceOf } from '@overlay/rpc'
import { type ChainWork, chainOf } from '../domain/chain.js'

/** Builds the chains of all clients that present certificates. */
export interface Chains {
  /**
   * As `chainOf`. A leaf whose issuer is trusted has its chain at once. Other leaves need the certificates beside them:
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

const MOST_WAITING = 250
/**
 * Of one source within a period, after which further chains are refused before they are built. Those of which no
 * signature was verified, because no trusted authority is named, do not count: a client of another authority fails so
 * with the authorities of the network at each login.
 */
const MOST_FAILURES = 20
const PERIOD_MS = 1000

export function openChains(): Chains {
  const queue = fairQueue({ name: 'certificate chains', running: 1, waiting: MOST_WAITING })
  const failures = new Map<string, number>()

  function noteFailure(source: string): void {
    if (failures.size === 0) setTimeout(() => failures.clear(), PERIOD_MS).unref()
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
          if ((failures.get(source) ?? 0) >= MOST_FAILURES) throw retryAfter(PERIOD_MS / 1000)
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
