import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { type Clients, startClients } from './clients.js'
import type { Cluster } from './cluster.js'
import { buildImage } from './image.js'
import { canFilter } from './network-policies.js'
import { canRunPods } from './pod-network.js'
import { logIn, startDevelopment, started } from './tested.js'

// namespaces and interfaces need root
describe.skipIf(!canRunPods() && process.env.CI !== 'true')('the development overlay', () => {
  let work: string
  let cluster: Cluster
  let clients: Clients
  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'overlay-test-'))
    await buildImage(join(work, 'image'))
    cluster = await startDevelopment({ images: { overlay: join(work, 'image') } })
  })
  afterAll(async () => {
    try {
      await clients?.[Symbol.asyncDispose]() // throws what they have failed with
    } finally {
      await cluster?.[Symbol.asyncDispose]()
      await rm(work, { recursive: true, force: true })
    }
  })
  /** Runs a step while clients work, and after it until each has seen its result. */
  async function underLoad(step: () => Promise<void>): Promise<void> {
    onTestFailed(async () => console.error(await readFile(join(cluster.directory, 'cluster.log'), 'utf8')))
    await step()
    await clients.round()
    expect(cluster.problems).toEqual([])
  }

  test('serves clients and routers', async () => {
    await started(cluster)
    const { server, admin } = await logIn(cluster)
    clients = await startClients(server, admin, cluster.addressOf('control'))
    await clients.round()
    expect(cluster.problems).toEqual([])
  })

  test('lets pods connect to those that the policies name, at their ports', async ({ skip }) => {
    skip(!canFilter(), 'network policies are not enforced, because nftables is missing')
    const connection = async (from: string, to: string, port: number): Promise<string> => {
      const [[source], [target]] = [cluster.endpoints(from), cluster.endpoints(to)]
      if (!source || !target) throw new Error(`${from} or ${to} has no pod`)
      return source.connectionTo(target.address, port)
    }
    expect(await connection('gateway', 'policy', 7000)).toBe('opened')
    expect(await connection('identity', 'pki', 7000)).toBe('opened')
    expect(await connection('policy', 'pki', 7000)).toBe('dropped')
    expect(await connection('policy', 'gateway', 1280)).toBe('dropped')
    expect(await connection('gateway', 'policy', 9000)).toBe('dropped') // of the monitoring
  })

  test('is scaled up and down, and no request fails', async () => {
    const components = ['gateway', 'policy', 'sessions']
    for (const replicas of [3, 2])
      await underLoad(async () => {
        for (const component of components) cluster.workload(component).scale(replicas)
        await cluster.settled()
        for (const component of components) expect(cluster.endpoints(component).length).toBe(replicas)
      })
  })

  test.each([[['identity', 'sessions']], [['pki', 'policy', 'gateway']]])(
    'restarts %j, and no request fails',
    (components) =>
      underLoad(async () => {
        const workloads = components.map((component) => cluster.workload(component))
        const before = workloads.flatMap((workload) => workload.pods())
        for (const workload of workloads) workload.roll()
        await cluster.settled()
        const after = workloads.flatMap((workload) => workload.pods())
        expect(after.filter((pod) => before.includes(pod))).toEqual([])
      }),
  )
})
