import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { FRAMES } from './frame-connection.js'
import { DIAL_MS } from './limits.js'
import { addressOf } from './unix-socket.js'

/** There is no connection to a replica, so it has not received the call: another one may execute it. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
}

/** Connects to `host:port` or `unix:/path`, for frames. */
export const dial = (address: string, options: ConnectionOptions): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ ...addressOf(address), ...options, ALPNProtocols: [FRAMES] })
    socket.setNoDelay(true)
    socket.setTimeout(DIAL_MS, () => socket.destroy(new Error(`${address} does not answer`)))
    socket.on('error', (err) => reject(new Unreachable(`${address} cannot be reached`, { cause: err })))
    socket.on('close', () => reject(new Unreachable(`${address} has closed the connection`)))
    socket.once('secureConnect', () => {
      socket.setTimeout(0)
      resolve(socket)
    })
  })
