import type { X509Certificate } from 'node:crypto'
import { hasIssued } from '@overlay/x509'
import { MAX_PATH } from '../limits.js'

/** When a chain is complete, and which authority may follow a certificate. */
export interface ChainRules {
  isComplete(last: X509Certificate): boolean
  hasIssued?(issuer: X509Certificate, certificate: X509Certificate): boolean
}

/**
 * Follows a certificate by authorities, each the issuer of the one before it, until the chain is complete or none of the
 * authorities continues it. Earlier authorities are preferred.
 */
export function buildChain(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
  rules: ChainRules,
): {
  readonly chain: readonly X509Certificate[]
  readonly last: X509Certificate
  readonly isComplete: boolean
} {
  const follows = rules.hasIssued ?? hasIssued
  const chain = [certificate]
  for (let last = certificate; ; ) {
    if (rules.isComplete(last)) return { chain, last, isComplete: true }
    const issuer = authorities.find((one) => !chain.includes(one) && follows(one, last))
    if (!issuer || chain.length === MAX_PATH) return { chain, last, isComplete: false }
    chain.push(issuer)
    last = issuer
  }
}
