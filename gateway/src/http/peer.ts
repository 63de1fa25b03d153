import type { IncomingMessage } from 'node:http'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import { clientAddressOf, clientSourceOf } from '@overlay/platform/tls'

const MAX_CHAIN_LENGTH = 16

/** By connection: Node decodes all certificates each time, 0.2 ms for each. */
const chains = new WeakMap<object, Buffer[]>()
/**
 * By source, when it last presented more certificates than any chain has. For a second, only leaves of its connections are
 * read: others of the same address may have chains.
 */
const tooLongAt = new Map<string, number>()
const TOO_LONG_MS = 1000
const MOST_SOURCES = 10_000

/**
 * The certificate that the client presented on this connection, unverified, without the others. Node looks for the
 * issuers of each when all are read, which costs several times as much. `getPeerX509Certificate` would cost less, but it
 * takes the chain out of the TLS session, and Node 20 never frees it.
 */
export const peerLeaf = ({ socket }: IncomingMessage): Buffer | undefined =>
  (socket as TLSSocket).getPeerCertificate(false).raw

/** The certificates that the client presented on this connection, leaf first and unverified. */
export function peerCertificates(incoming: IncomingMessage): Buffer[] {
  const { socket } = incoming
  const known = chains.get(socket)
  if (known) return known
  const source = clientSourceOf(socket)
  if (performance.now() - (tooLongAt.get(source) ?? Number.NEGATIVE_INFINITY) < TOO_LONG_MS) {
    const leaf = peerLeaf(incoming)
    return leaf ? [leaf] : []
  }
  const chain = chainOf(socket as TLSSocket, () => noteTooLong(source))
  chains.set(socket, chain)
  return chain
}

function noteTooLong(source: string): void {
  tooLongAt.delete(source) // to the end
  tooLongAt.set(source, performance.now())
  const [oldest] = tooLongAt.keys()
  if (oldest !== undefined && tooLongAt.size > MOST_SOURCES) tooLongAt.delete(oldest)
}

function chainOf(socket: TLSSocket, onTooLong: () => void): Buffer[] {
  const fingerprints = new Set<string>() // a chain may be circular
  const chain: Buffer[] = []
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
  while (next?.raw && !fingerprints.has(next.fingerprint256)) {
    if (chain.length === MAX_CHAIN_LENGTH) {
      onTooLong()
      break
    }
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
