import { X509Certificate } from 'node:crypto'
import { type Context, type Methods, ownContext, type PkiServiceService, type Positions } from '@overlay/rpc'
import type { ChangeLog, Consumer } from '@overlay/store/change-log'
import { type CaCopy, readCas } from '../store/cas.js'
import { certificateBlocksIn } from './certificates.js'
import type { Chains } from './chains.js'

/** External authorities, which may certify clients. */
export interface Authorities {
  /** All authorities, as pki has them at the time of the call. */
  all(signal: AbortSignal): Promise<readonly CaCopy[]>
  /** The one of these to which the presented certificates lead. */
  issuerOf(
    cas: readonly CaCopy[],
    presented: readonly X509Certificate[],
    context: Context,
    now: Date,
  ): Promise<CaCopy | undefined>
}

/** Waits for the consumer of pki at each call: an authority that is revoked must not admit another login. */
export function openAuthorities(
  { db }: Pick<ChangeLog, 'db'>,
  consumer: Pick<Consumer, 'catchUp'>,
  chains: Chains,
): Authorities {
  let parsed = new Map<string, readonly X509Certificate[]>() // by their PEM
  const certificatesOf = ({ certPem }: CaCopy): readonly X509Certificate[] => {
    const certificates =
      parsed.get(certPem) ?? certificateBlocksIn(certPem).map((block) => new X509Certificate(block))
    parsed.set(certPem, certificates)
    return certificates
  }
  return {
    async all(signal) {
      await consumer.catchUp(signal)
      const cas = await readCas(db)
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

/** The authorities of the network, to which client certificates must lead. */
export interface Trust {
  /** Reads them from pki unless the last answer is younger than `maxAgeMs`. The same array while they are the same. */
  certificates(maxAgeMs?: number): Promise<readonly X509Certificate[]>
  /** They may have changed. @param positions the changes that the answer of pki must contain */
  reload(positions: Positions): void
}

interface Cached {
  readonly certificates: readonly X509Certificate[]
  /** What pki has answered. */
  readonly text: string
  readonly at: number
}

/** Caches the trust bundle of pki. Concurrent callers share one request. */
export function openTrust(
  pki: Pick<Methods<PkiServiceService>, 'getTrustBundle'>,
  usualAgeMs: number,
  now: () => number = Date.now,
): Trust {
  let cached: Cached | undefined
  let last: Cached | undefined // also after a reload
  let request: Promise<readonly X509Certificate[]> | undefined
  let seen: Positions = {}

  const read = async (): Promise<readonly X509Certificate[]> => {
    const at = now()
    const positions = seen
    const { pems } = await pki.getTrustBundle({}, { ...ownContext(AbortSignal.timeout(5000)), positions })
    const text = pems.join()
    const certificates = last?.text === text ? last.certificates : pems.map((pem) => new X509Certificate(pem))
    last = { certificates, text, at }
    if (positions === seen) cached = last
    return certificates
  }
  return {
    async certificates(maxAgeMs = usualAgeMs) {
      if (cached && now() - cached.at < maxAgeMs) return cached.certificates
      if (!request) {
        const own = read().finally(() => {
          if (request === own) request = undefined
        })
        request = own
      }
      return request
    },
    reload(positions) {
      seen = positions
      request = undefined
      cached = undefined
    },
  }
}
