import { lookup } from 'node:dns/promises'
import * as net from 'node:net'
import { getSystemErrorName } from 'node:util'
import type { Address } from '../system/ports.js'

/** A socket that is bound to an address and passed to several processes, which listen and accept at it. */
export interface SharedSocket {
  /** Its descriptor in this process. */
  readonly fd: number
  /** Processes that have received it keep it. */
  close(): void
}

interface Handle {
  readonly fd: number
  getsockname(name: { port?: number }): number
  close(): void
}

/**
 * Node has no public function that binds without accepting; the servers of this process would take connections
 * themselves. Its module `cluster` uses this one, which returns the number of an error instead of throwing.
 */
const { _createServerHandle: bind } = net as unknown as {
  _createServerHandle(address: string, port: number, family: number, fd: null, flags: number): Handle | number
}

/** Binds to an address. Its processes need no right to do so themselves. */
export async function bindShared({ host, port }: Address): Promise<SharedSocket> {
  const failed = (code: string): Error => new Error(`cannot bind to ${host}:${port}: ${code}`)
  const { address, family } = await lookup(host)
  const handle = bind(address, port, family, null, 0)
  if (typeof handle === 'number') throw failed(getSystemErrorName(handle))
  // the handle hides that the address is taken until it listens; until then, it has no address
  const name: { port?: number } = {}
  handle.getsockname(name)
  if (name.port !== port) {
    handle.close()
    throw failed('EADDRINUSE')
  }
  return { fd: handle.fd, close: () => handle.close() }
}
