import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import { MAX_CERTIFICATES, MAX_KEY_BITS } from '../limits.js'

/** By connection: Node decodes all certificates each time, 0.2 ms for each. */
const chains = new WeakMap<object, Presented>()
const leaves = new WeakMap<object, { readonly der: Buffer | undefined }>()

interface Presented {
  readonly chain: readonly Buffer[]
  /** There are more of them, or longer keys, than in any chain that a policy accepts. */
  readonly isExcessive: boolean
}

/**
 * The certificate that the client presented on this connection, unverified, without the others. Node looks for the
 * issuers of each when all are read, which costs several times as much. `getPeerX509Certificate` would cost less, but it
 * takes the chain out of the TLS session.
 */
export function presentedLeaf(socket: TLSSocket): Buffer | undefined {
  const known = leaves.get(socket)
  if (known) return known.der
  const der = socket.getPeerCertificate(false).raw
  leaves.set(socket, { der })
  return der
}

/** The certificates that the client presented on this connection, leaf first and unverified. */
export const presentedChain = (socket: TLSSocket): readonly Buffer[] => presentedBy(socket).chain

export const isExcessive = (socket: TLSSocket): boolean => presentedBy(socket).isExcessive

function presentedBy(socket: TLSSocket): Presented {
  const known = chains.get(socket)
  if (known) return known
  const fingerprints = new Set<string>() // a chain may be circular
  const chain: Buffer[] = []
  let isExcessive = false
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
  while (next?.raw && !fingerprints.has(next.fingerprint256)) {
    isExcessive = chain.length === MAX_CERTIFICATES || (next.bits ?? 0) > MAX_KEY_BITS
    if (isExcessive) break
    fingerprints.add(next.fingerprint256)
    chain.push(next.raw)
    next = next.issuerCertificate
  }
  const presented = { chain, isExcessive }
  chains.set(socket, presented)
  return presented
}
