import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { clientAddressOf, presentedChain, presentedLeaf } from '@overlay/process/tls'

/** The certificate that the client presented on this connection, unverified, without the others. */
export const peerLeaf = ({ socket }: IncomingMessage): Buffer | undefined =>
  presentedLeaf(socket as TLSSocket)

/** The certificates that the client presented on this connection, leaf first and unverified. */
export const peerCertificates = ({ socket }: IncomingMessage): Buffer[] => [
  ...presentedChain(socket as TLSSocket),
]

/** The address of the client with its port, as host:port. */
export function remoteAddressOf({ socket }: IncomingMessage): string {
  const host = clientAddressOf(socket)
  return `${host.includes(':') ? `[${host}]` : host}:${socket.remotePort ?? 0}`
}
