/** What the certificate of a process may name. `operator`: tools of an operator, such as grpcurl. */
export const peerNames = ['gateway', 'identity', 'pki', 'policy', 'sessions', 'operator'] as const

export type PeerName = (typeof peerNames)[number]

/**
 * The peer that a certificate names. Undefined: none, or several.
 * @param altNames as Node writes them: `DNS:policy, DNS:policy.overlay.svc`
 */
export function peerNameIn(altNames: string | undefined): PeerName | undefined {
  // Node quotes names that contain a comma. Names of peers have none, and within the quotes anything can be written
  if (altNames === undefined || altNames.includes('"')) return undefined
  const names = new Set(altNames.split(', '))
  const [name, ...others] = peerNames.filter((name) => names.has(`DNS:${name}`))
  return others.length === 0 ? name : undefined
}
