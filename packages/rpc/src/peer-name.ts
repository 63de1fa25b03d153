/** What the certificate of a process may name. `operator`: tools of an operator, such as grpcurl. */
export const peerNames = ['gateway', 'identity', 'pki', 'policy', 'sessions', 'operator'] as const

export type PeerName = (typeof peerNames)[number]

/**
 * The peers among the DNS names of a certificate.
 * @param altNames as Node writes them: `DNS:policy, DNS:policy.overlay.svc`
 */
export function peerNamesIn(altNames: string | undefined): readonly PeerName[] {
  // Node quotes names that contain a comma. None of ours does, and within the quotes anything can be written
  if (altNames === undefined || altNames.includes('"')) return []
  const names = new Set(altNames.split(', '))
  return peerNames.filter((name) => names.has(`DNS:${name}`))
}

/** The peer that a certificate names. Undefined: none, or several. */
export function peerNameIn(altNames: string | undefined): PeerName | undefined {
  const [name, ...others] = peerNamesIn(altNames)
  return others.length === 0 ? name : undefined
}
