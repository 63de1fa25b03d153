import { X509Certificate } from 'node:crypto'
import type { ChangeLog, Consumer } from '@overlay/platform/change-log'
import { chainOf } from '../domain/chain.js'
import { type KnownCa, knownCas } from '../store/known-cas.js'
import { blocksIn } from './certificates.js'

/** An authority of somebody else, and the certificates from a client's leaf to it. */
export interface Vouched {
  readonly ca: KnownCa
  readonly chain: readonly X509Certificate[]
}

export interface Authorities {
  /** As pki has them now. */
  all(signal: AbortSignal): Promise<readonly KnownCa[]>
  /** The one of these to which the presented certificates lead. */
  vouching(cas: readonly KnownCa[], presented: readonly X509Certificate[], now: Date): Vouched | undefined
}

/** `followed`: what pki tells of them. It is asked each time: who is not to log in any more must not be late. */
export function openAuthorities(
  { db }: Pick<ChangeLog, 'db'>,
  followed: Pick<Consumer, 'catchUp'>,
): Authorities {
  let parsed = new Map<string, readonly X509Certificate[]>() // by their PEM
  const certificatesOf = ({ certPem }: KnownCa): readonly X509Certificate[] => {
    const known = parsed.get(certPem) ?? blocksIn(certPem).map((block) => new X509Certificate(block))
    parsed.set(certPem, known)
    return known
  }
  return {
    async all(signal) {
      await followed.catchUp(signal)
      const cas = await knownCas(db)
      if (parsed.size > cas.length) parsed = new Map()
      return cas
    },

    vouching(cas, presented, now) {
      const chain = chainOf(presented, cas.flatMap(certificatesOf), now)
      const anchor = chain?.at(-1)
      const ca = anchor && cas.find((one) => certificatesOf(one).some(({ raw }) => raw.equals(anchor.raw)))
      return chain && ca && { ca, chain }
    },
  }
}
