import { X509Certificate } from 'node:crypto'
import { type Methods, ownContext, type PkiServiceService } from '@overlay/rpc'

/** What client certificates must lead to. */
export interface Trust {
  /** Not older than `maxAgeMs`, or than is usual. */
  certificates(maxAgeMs?: number): Promise<readonly X509Certificate[]>
}

/** Asks pki, and asks again when the answer is too old. One question at a time, for all who wait. */
export function openTrust(
  pki: Pick<Methods<PkiServiceService>, 'getTrustBundle'>,
  usualAgeMs: number,
  now: () => number = Date.now,
): Trust {
  let known: { readonly certificates: readonly X509Certificate[]; readonly at: number } | undefined
  let asking: Promise<readonly X509Certificate[]> | undefined

  const ask = async (): Promise<readonly X509Certificate[]> => {
    const at = now()
    const { pems } = await pki.getTrustBundle({}, ownContext(AbortSignal.timeout(5000)))
    const certificates = pems.map((pem) => new X509Certificate(pem))
    known = { certificates, at }
    return certificates
  }
  return {
    async certificates(maxAgeMs = usualAgeMs) {
      if (known && now() - known.at < maxAgeMs) return known.certificates
      asking ??= ask().finally(() => {
        asking = undefined
      })
      return asking
    },
  }
}
