import { createHash, randomUUID, X509Certificate } from 'node:crypto'
import { trustDomainOf } from '@overlay/x509'
import { type KeyRole, keyOf } from '../domain/key-plan.js'
import type { Key } from '../store/keys.js'
import { pathOf } from './certificate-path.js'
import { KeyRefused } from './key-refused.js'
import type { ProvidedKey } from './provided-key.js'

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
export function refuseOtherTrustDomain(wanted: string | undefined, actual: string | undefined): void {
  if (wanted === undefined || actual === undefined || wanted === actual) return
  throw new Error(
    `OVERLAY_TRUST_DOMAIN is ${wanted}, but the trust domain of this network is ${actual} and cannot change: certificates name it. Set OVERLAY_TRUST_DOMAIN=${actual}, or leave it out`,
  )
}

/**
 * wire: what a network with these keys is called: after the first SPIFFE id on the way from the certificate of the servers,
 * or of the signing authority, to the root, otherwise after the SHA-1 digest of the root of the signing authority.
 * Undefined: the keys say nothing.
 */
export function trustDomainFrom(
  provided: readonly { readonly role: KeyRole; readonly material: ProvidedKey }[],
): { readonly id?: string | undefined; readonly digest?: string | undefined } {
  const pathFor = (role: KeyRole): readonly string[] => {
    const material = provided.find((key) => key.role === role)?.material
    return material ? wholePathOf(material) : []
  }
  const [server, signing] = [pathFor('server'), pathFor('signing')]
  const root = signing.at(-1)
  return {
    id: [...server, ...signing].map(trustDomainOf).find((domain) => domain !== undefined),
    digest: root && createHash('sha1').update(new X509Certificate(root).raw).digest('hex'),
  }
}

/** The certificate first, the root last. Empty: it leads to no root, for which the key is refused. */
function wholePathOf({ certificate, chain }: ProvidedKey): readonly string[] {
  try {
    const { between, root } = pathOf(certificate, chain, [])
    return [certificate, ...between, ...(root === undefined ? [] : [root])]
  } catch (err) {
    if (err instanceof KeyRefused) return []
    throw err
  }
}
