import type { IncomingMessage } from 'node:http'

/** Time for a client to send the rest of a request that has been answered. */
const REST_MS = 500

/** Of a request whose body is answered but not received: waits for the rest, then closes the connection. */
export function discardRest(incoming: IncomingMessage): void {
  if (incoming.destroyed) return
  const late = setTimeout(() => incoming.socket.destroySoon(), REST_MS).unref()
  const stop = (): void => clearTimeout(late)
  incoming.once('end', stop).once('error', stop).once('close', stop)
  incoming.resume()
}
