import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import * as tls from 'node:tls'

/** Both ends of a TLS connection. */
export interface TlsPair extends AsyncDisposable {
  readonly server: tls.TLSSocket
  readonly client: tls.TLSSocket
}

// a shared key in place of certificates
const psk = Buffer.alloc(32, 1)
const secure = { ciphers: 'PSK-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' } as const

export async function tlsPair(): Promise<TlsPair> {
  const listener = tls.createServer({ ...secure, pskCallback: () => psk })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const connected = once(listener, 'secureConnection')
  const client = tls.connect({
    ...secure,
    port,
    host: '127.0.0.1',
    checkServerIdentity: () => undefined,
    pskCallback: () => ({ psk, identity: 'test' }),
  })
  const [server] = (await connected) as [tls.TLSSocket]
  for (const socket of [client, server]) socket.on('error', () => {})
  return {
    server,
    client,
    async [Symbol.asyncDispose]() {
      client.destroy()
      server.destroy()
      listener.close()
      await once(listener, 'close')
    },
  }
}

/** Resolves once the socket has closed. */
export const closed = (socket: tls.TLSSocket): Promise<unknown> =>
  socket.closed ? Promise.resolve() : once(socket, 'close')
