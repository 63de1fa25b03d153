import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { createServer, type SecureContextOptions, type TLSSocket } from 'node:tls'

/** Continues accepted connections with TLS. A client must have a certificate of the authorities of the directory. */
export interface TlsUpgrade {
  start(socket: Socket): void
  /** Further connections use the present files of the directory. */
  reload(): void
}

/** @param accept called for each client that is trusted; others are closed */
export function openTlsUpgrade(
  directory: string,
  handshakeTimeout: number,
  accept: (socket: TLSSocket) => void,
): TlsUpgrade {
  const server = createServer(
    { ...filesIn(directory), requestCert: true, rejectUnauthorized: true, handshakeTimeout },
    accept,
  )
  server.on('tlsClientError', (_err, socket) => socket.destroy())
  return {
    start: (socket) => void server.emit('connection', socket),
    reload: () => server.setSecureContext(filesIn(directory)),
  }
}

function filesIn(directory: string): SecureContextOptions {
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8')
  return { cert: read('tls.crt'), key: read('tls.key'), ca: read('ca.crt'), minVersion: 'TLSv1.3' }
}
