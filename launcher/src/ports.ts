import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

// Below the ports that the system itself gives to outgoing connections: nobody takes one between choice and use.
const lowest = 20_000
const ephemeral = 32_768

/** A port of the loopback interface on which nobody listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(lowest, ephemeral)
    if (await isFree(port)) return port
  }
}

export function isFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })
}
