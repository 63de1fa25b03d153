import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { EPHEMERAL_PORT, LOWEST_PORT } from '../limits.js'

// Below the ports of outgoing connections: the system takes none of these between choice and use.

export interface Address {
  readonly host: string
  readonly port: number
}

const reserved = new Set<number>()

/** A free port of the loopback interface that this process has not returned before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST_PORT, EPHEMERAL_PORT)
    if (reserved.has(port)) continue
    reserved.add(port)
    if (!(await listenError({ host: '127.0.0.1', port }))) return port
    reserved.delete(port)
  }
}

/** Makes sure that `freePort` does not return these. */
export function reservePorts(ports: readonly number[]): void {
  for (const port of ports) reserved.add(port)
}

/** Whether only root may listen at the port. */
export async function isPrivileged({ port }: Address): Promise<boolean> {
  const lowestFree = await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(
    () => '1024',
  )
  return port < Number(lowestFree)
}

/** Tries to listen at the address: the error of the system, or undefined. */
export function listenError({ host, port }: Address): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', resolve)
    server.listen(port, host, () => server.close(() => resolve(undefined)))
  })
}

/** Whether two servers cannot listen at both. */
export const collide = (a: Address, b: Address): boolean =>
  a.port === b.port &&
  a.port !== 0 &&
  (ipOf(a) === ipOf(b) || [a.host, b.host].some((host) => /^(0\.0\.0\.0|::)$/.test(host)))

const ipOf = ({ host }: Address): string => (host === 'localhost' ? '127.0.0.1' : host)
