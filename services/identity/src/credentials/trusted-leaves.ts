import { createHash, type X509Certificate } from 'node:crypto'
import type { Context } from '@overlay/rpc'
import { datesOfAll, type Leaf, leafOf } from '../domain/leaf.js'
import { certificatesOf } from './certificates.js'
import type { Chains } from './chains.js'
import type { Trust } from './trust.js'

/** Client certificates that lead to an authority of the network. */
export interface TrustedLeaves {
  /** @param presented DER, leaf first. */
  find(presented: readonly Uint8Array[], context: Context, now: Date): Promise<FoundLeaf>
}

export interface FoundLeaf {
  /** Undefined: it does not lead to these authorities. */
  readonly leaf: Leaf | undefined
  /** The authorities of the network, as far as they are known here. */
  readonly trusted: readonly X509Certificate[]
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
export function openTrustedLeaves(trust: Trust, chains: Chains): TrustedLeaves {
  const kept = new Map<string, Verified>()

  async function verified(
    presented: readonly Uint8Array[],
    trusted: readonly X509Certificate[],
    context: Context,
    now: Date,
  ): Promise<Verified | undefined> {
    const chain = await chains.find(certificatesOf(presented), trusted, context, now)
    if (!chain) return undefined
    const [leaf, ...above] = chain
    return leaf && { leaf: leafOf(leaf), trusted, above: datesOfAll(above) }
  }
  return {
    async find(presented, context, now) {
      const trusted = await trust.certificates()
      const key = digestOf(presented)
      const known = kept.get(key)
      if (known?.trusted === trusted && known.above.validFrom <= now && now <= known.above.validTo)
        return { leaf: known.leaf, trusted }
      const found = await verified(presented, trusted, context, now)
      if (kept.size >= MOST_KEPT) kept.clear()
      if (found) kept.set(key, found)
      else kept.delete(key)
      return { leaf: found?.leaf, trusted }
    },
  }
}

function digestOf(presented: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const der of presented) hash.update(`${der.length} `).update(der)
  return hash.digest('base64')
}
