import { X509Certificate } from 'node:crypto'
import { type Methods, ownContext, type PkiServiceService, type Positions } from '@overlay/rpc'

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
