import { createHash, type X509Certificate } from 'node:crypto'
import { chainOf } from '../domain/chain.js'
import { datesOfAll, type Leaf, leafOf } from '../domain/leaf.js'
import { certificatesOf } from './certificates.js'
import type { Trust } from './trust.js'

/** Client certificates that lead to an authority of the network. */
export interface TrustedLeaves {
  /** @param presented DER, leaf first. Undefined: as far as the trusted authorities are known here, it does not. */
  find(presented: readonly Uint8Array[], now: Date): Promise<Leaf | undefined>
}

const MOST_KEPT = 4000

interface Verified {
  readonly leaf: Leaf
  /** The authorities that it was verified with. */
  readonly trusted: readonly X509Certificate[]
  /** While all certificates above the leaf are valid. */
  readonly above: Pick<Leaf, 'validFrom' | 'validTo'>
}

/**
 * Verifies a chain once: clients log in repeatedly with the same certificates. A chain is verified again as soon as the
 * trusted authorities are others. Chains that do not verify are not kept.
 */
export function openTrustedLeaves(trust: Trust): TrustedLeaves {
  const kept = new Map<string, Verified>()

  function verified(
    presented: readonly Uint8Array[],
    trusted: readonly X509Certificate[],
    now: Date,
  ): Verified | undefined {
    const chain = chainOf(certificatesOf(presented), trusted, now)
    if (!chain) return undefined
    const [leaf, ...above] = chain
    return leaf && { leaf: leafOf(leaf), trusted, above: datesOfAll(above) }
  }
  return {
    async find(presented, now) {
      const trusted = await trust.certificates()
      const key = digestOf(presented)
      const known = kept.get(key)
      if (known?.trusted === trusted && known.above.validFrom <= now && now <= known.above.validTo)
        return known.leaf
      const found = verified(presented, trusted, now)
      if (kept.size >= MOST_KEPT) kept.clear()
      if (found) kept.set(key, found)
      else kept.delete(key)
      return found?.leaf
    },
  }
}

function digestOf(presented: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const der of presented) hash.update(`${der.length} `).update(der)
  return hash.digest('base64')
}
