import { X509Certificate } from 'node:crypto'
import type { Context } from '@overlay/rpc'
import type { ChangeLog, Consumer } from '@overlay/store/change-log'
import { type KnownCa, knownCas } from '../store/known-cas.js'
import { certificateBlocksIn } from './certificates.js'
import type { Chains } from './chains.js'

/** External authorities, which may certify clients. */
export interface Authorities {
  /** All authorities, as pki has them at the time of the call. */
  all(signal: AbortSignal): Promise<readonly KnownCa[]>
  /** The one of these to which the presented certificates lead. */
  issuerOf(
    cas: readonly KnownCa[],
    presented: readonly X509Certificate[],
    context: Context,
    now: Date,
  ): Promise<KnownCa | undefined>
}

/** Waits for the consumer of pki at each call: an authority that is revoked must not admit another login. */
export function openAuthorities(
  { db }: Pick<ChangeLog, 'db'>,
  consumer: Pick<Consumer, 'catchUp'>,
  chains: Chains,
): Authorities {
  let parsed = new Map<string, readonly X509Certificate[]>() // by their PEM
  const certificatesOf = ({ certPem }: KnownCa): readonly X509Certificate[] => {
    const certificates =
      parsed.get(certPem) ?? certificateBlocksIn(certPem).map((block) => new X509Certificate(block))
    parsed.set(certPem, certificates)
    return certificates
  }
  return {
    async all(signal) {
      await consumer.catchUp(signal)
      const cas = await knownCas(db)
      if (parsed.size > cas.length) parsed = new Map()
      return cas
    },

    async issuerOf(cas, presented, context, now) {
      const chain = await chains.find(presented, cas.flatMap(certificatesOf), context, now)
      const anchor = chain?.at(-1)
      return anchor && cas.find((ca) => certificatesOf(ca).some(({ raw }) => raw.equals(anchor.raw)))
    },
  }
}
