import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { startNetworkOfPods } from './cluster/network.js'
import type { LeaseRequest, NetworkFacts } from './leased-network.js'
import { type Network, startNetworkOfProcesses } from './network.js'
import { openReset, type Reset } from './reset.js'

// Lends networks to files of tests: shared-networks.ts SOCKET. A connection is a lease. It sends a request and receives
// what is to be known of the network, a line of JSON each. After its end, the network is reset for the next file.

/** One process of each component. Hashes of passwords take a tenth of their usual time. */
const layout = {
  env: { OVERLAY_PASSWORD_MEMORY_KIB: '3072', OVERLAY_PASSWORD_PASSES: '1' },
}

interface Shared {
  readonly image: string | undefined
  readonly network: Network
  readonly reset: Reset
}

const free: Shared[] = []
const returning = new Map<Promise<void>, string | undefined>()
const work = new Set<Promise<void>>()
const problems: unknown[] = []

async function start(image: string | undefined): Promise<Shared> {
  const network = await (image === undefined ? startNetworkOfProcesses(layout) : startNetworkOfPods(image))
  return { image, network, reset: await openReset(await network.admin()) }
}

async function giveBack(shared: Shared): Promise<void> {
  if (await shared.reset()) free.push(shared)
  else await shared.network[Symbol.asyncDispose]()
}

/** One that is free, or will be soon. */
async function take(image: string | undefined): Promise<Shared> {
  for (;;) {
    const at = free.findIndex((one) => one.image === image)
    const [shared] = at < 0 ? [] : free.splice(at, 1)
    if (shared) return shared
    const [soon] = [...returning].find(([, returned]) => returned === image) ?? []
    if (!soon) return start(image)
    await soon
  }
}

async function lend(connection: Socket): Promise<void> {
  const ended = once(connection, 'close')
  const [line] = (await once(createInterface({ input: connection }), 'line')) as [string]
  const { image } = JSON.parse(line) as LeaseRequest
  const shared = await take(image)
  connection.write(`${JSON.stringify(factsOf(shared))}\n`)
  await ended
  const returned = giveBack(shared)
  returning.set(returned, image)
  await returned.finally(() => returning.delete(returned))
}

function factsOf({ image, network }: Shared): NetworkFacts {
  const { address, gateways, ctrlAddress, controllers, caPem, home } = network
  return {
    ...{ address, gateways, ctrlAddress, controllers, caPem, home },
    ...(image === undefined && {
      bus: { url: network.bus.url, login: network.bus.login },
      databaseUrl: network.databaseUrl,
      pids: [...network.processes].map(([name, one]) => [name, one.pid()] as const),
    }),
  }
}

const server = createServer((connection) => {
  connection.on('error', () => undefined) // it has ended
  const lending = lend(connection)
    .catch((err: unknown) => {
      problems.push(err)
      connection.destroy()
    })
    .finally(() => work.delete(lending))
  work.add(lending)
})
server.listen(process.argv[2])
await once(server, 'listening')
console.log('listening')

await once(process.stdin.resume(), 'end')
server.close()
await Promise.all(work)
for (const { network } of free) {
  try {
    await network[Symbol.asyncDispose]()
  } catch (err) {
    problems.push(err)
  }
}
for (const problem of problems) console.error(problem)
process.exit(problems.length > 0 ? 1 : 0)
