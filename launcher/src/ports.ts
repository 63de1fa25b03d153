import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'

// Below the ports that the system itself gives to outgoing connections: nobody takes one between choice and use.
const lowest = 20_000
const ephemeral = 32_768

export interface Address {
  readonly host: string
  readonly port: number
}

const given = new Set<number>()

/** A port of the loopback interface on which nobody listens, and which this process has not been given before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(lowest, ephemeral)
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
    given.delete(port)
  }
}

/** Whether only root may listen there. */
export async function isPrivileged({ port }: Address): Promise<boolean> {
  const lowestFree = await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(
    () => '1024',
  )
  return port < Number(lowestFree)
}

function isFree(port: number): Promise<boolean> {
  return whyNotFree({ host: '127.0.0.1', port }).then((reason) => reason === undefined)
}

/** What the system says when one tries to listen there; nothing when one may. */
export function whyNotFree({ host, port }: Address): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (err) => resolve(err.message))
    server.listen(port, host, () => server.close(() => resolve(undefined)))
  })
}
