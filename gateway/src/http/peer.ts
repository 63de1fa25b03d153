import type { IncomingMessage } from 'node:http'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import { clientAddressOf } from '@overlay/platform/tls'

const MAX_CHAIN_LENGTH = 16

/**
 * The certificate that the client presented on this connection, unverified, without the others. Node looks for the
 * issuers of each when all are read, which costs several times as much. `getPeerX509Certificate` would cost less, but it
 * takes the chain out of the TLS session, and Node 20 never frees it.
 */
export const peerLeaf = ({ socket }: IncomingMessage): Buffer | undefined =>
  (socket as TLSSocket).getPeerCertificate(false).raw

/** The certificates that the client presented on this connection, leaf first and unverified. */
export function peerCertificates({ socket }: IncomingMessage): Buffer[] {
  const fingerprints = new Set<string>() // a chain may be circular
  const chain: Buffer[] = []
  let next: DetailedPeerCertificate | undefined = (socket as TLSSocket).getPeerCertificate(true)
  while (next?.raw && !fingerprints.has(next.fingerprint256) && chain.length < MAX_CHAIN_LENGTH) {
    fingerprints.add(next.fingerprint256)
    chain.push(next.raw)
    next = next.issuerCertificate
  }
  return chain
}

/** The address of the client with its port, as host:port. */
export function remoteAddressOf({ socket }: IncomingMessage): string {
  const host = clientAddressOf(socket)
  return `${host.includes(':') ? `[${host}]` : host}:${socket.remotePort ?? 0}`
}
