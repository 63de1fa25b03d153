import type { IncomingMessage } from 'node:http'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'

/** Longer chains than this nobody has; a chain that turns in a circle ends anyway. */
const LONGEST = 16

/** The certificates that the client showed on this connection, leaf first. Nobody has verified them yet. */
export function peerCertificates({ socket }: IncomingMessage): Buffer[] {
  const seen = new Set<string>()
  const chain: Buffer[] = []
  let next: DetailedPeerCertificate | undefined = (socket as TLSSocket).getPeerCertificate(true)
  while (next?.raw && !seen.has(next.fingerprint256) && chain.length < LONGEST) {
    seen.add(next.fingerprint256)
    chain.push(next.raw)
    next = next.issuerCertificate
  }
  return chain
}
