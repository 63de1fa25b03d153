import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'

// Below the ports of outgoing connections: the system takes none of these between choice and use.
const lowest = 20_000
const ephemeral = 32_768

export interface Address {
  readonly host: string
  readonly port: number
}

const reserved = new Set<number>()

/** A free port of the loopback interface that this process has not returned before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(lowest, ephemeral)
    if (reserved.has(port)) continue
    reserved.add(port)
    if (await isFree(port)) return port
    reserved.delete(port)
  }
}

/** Whether only root may listen at the port. */
export async function isPrivileged({ port }: Address): Promise<boolean> {
  const lowestFree = await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(
    () => '1024',
  )
  return port < Number(lowestFree)
}

function isFree(port: number): Promise<boolean> {
  return listenError({ host: '127.0.0.1', port }).then((reason) => reason === undefined)
}

/** Tries to listen at the address: the error of the system, or undefined. */
export function listenError({ host, port }: Address): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (err) => resolve(err.message))
    server.listen(port, host, () => server.close(() => resolve(undefined)))
  })
}
