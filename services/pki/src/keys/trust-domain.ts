import { randomUUID } from 'node:crypto'
import { trustDomainOf } from '@overlay/x509'
import { keyOf } from '../domain/planned-key.js'
import type { Key } from '../store/keys.js'

/** Undefined: there are no keys yet. It never changes: certificates of authorities, sessions and routers name it. */
export function trustDomainIn(certified: readonly Key[]): string | undefined {
  const root = keyOf(certified, 'root', 'active')
  return root && (root.trustDomain ?? trustDomainOf(root.pem))
}

/** That of the network, or the one that a new network gets. */
export const trustDomainFor = (
  certified: readonly Key[],
  { trustDomain = randomUUID() }: { readonly trustDomain?: string | undefined },
): string => trustDomainIn(certified) ?? trustDomain

/** Throws if the setting names another trust domain than the network has. */
export function refuseOtherTrustDomain(configured: string | undefined, actual: string | undefined): void {
  if (configured === undefined || actual === undefined || configured === actual) return
  throw new Error(
    `OVERLAY_TRUST_DOMAIN is ${configured}, but the trust domain of this network is ${actual} and cannot change: certificates name it. Set OVERLAY_TRUST_DOMAIN=${actual}, or leave it out`,
  )
}
