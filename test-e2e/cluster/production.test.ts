import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, onTestFailed, onTestFinished, test } from 'vitest'
import type { Admin } from '../admin.js'
import type { Server } from '../client.js'
import { type KubernetesObject, render } from '../kubernetes/kustomize.js'
import { trafficOf, until } from '../traffic.js'
import { openAutoscaler } from './autoscaler.js'
import { type Clients, startClients } from './clients.js'
import type { Cluster } from './cluster.js'
import { canFilter } from './network-policies.js'
import { documentedSecrets, type Operator, startOperator } from './operator.js'
import { openScraper } from './scraper.js'
import { logIn, started, startOverlay } from './tested.js'

let operator: Operator
let objects: readonly KubernetesObject[]
let cluster: Cluster
let clients: Clients
let network: { readonly server: Server; readonly admin: Admin }
beforeAll(async () => {
  operator = await startOperator()
  objects = [...(await render('overlays/production')).objects, ...operator.secrets]
  cluster = await startOverlay({
    objects,
    images: { 'registry.example.org/overlay': inject('image') },
    outside: operator.servers,
    hurry: 10,
  })
})
afterAll(async () => {
  try {
    await clients?.[Symbol.asyncDispose]() // throws what they have failed with
  } finally {
    await cluster?.[Symbol.asyncDispose]()
    await operator?.[Symbol.asyncDispose]()
  }
})

const printLogOnFailure = (): void =>
  onTestFailed(async () => console.error(await readFile(join(cluster.directory, 'cluster.log'), 'utf8')))

test('the document names the secrets that the operator of these tests provides', async () => {
  const provided = operator.secrets.map(({ metadata, stringData }) => [
    metadata.name,
    Object.keys(stringData),
  ])
  expect(await documentedSecrets()).toEqual(Object.fromEntries(provided))
})

test('with them, a Postgres and a NATS, the production overlay serves clients and routers', async () => {
  printLogOnFailure()
  await started(cluster)
  network = await logIn(cluster)
  clients = await startClients(network.server, network.admin, cluster.addressOf('control'))
  await clients.round()
  expect(cluster.problems).toEqual([])
})

test('pods with a schema reach Postgres and NATS, and the others do not', async ({ skip }) => {
  skip(!canFilter(), 'network policies are not enforced, because nftables is missing')
  const connections = (from: string) =>
    Promise.all(
      operator.servers.map(({ address, port }) => cluster.endpoints(from)[0]?.connectionTo(address, port)),
    )
  expect(await Promise.all(['sessions', 'gateway'].map(connections))).toEqual([
    ['opened', 'opened'],
    ['dropped', 'dropped'],
  ])
})

test('autoscalers add and remove replicas by what they read from pods, and no request fails', async () => {
  printLogOnFailure()
  const components = ['gateway', 'policy', 'sessions']
  const few = withTarget(objects, 'overlay_routers_connected', '1')
  const [gateway, policy, sessions] = await Promise.all([
    openAutoscaler(cluster, few, 'gateway'),
    openAutoscaler(cluster, few, 'policy'),
    openAutoscaler(cluster, few, 'sessions'),
  ])
  async function expectReplicas(...counts: number[]): Promise<void> {
    await cluster.settled()
    await clients.round()
    expect(components.map((name) => cluster.endpoints(name).length)).toEqual(counts)
    expect(cluster.problems).toEqual([])
  }
  const scrape = openScraper(objects)
  const ofSessions = (series: string): Promise<readonly number[]> =>
    Promise.all(cluster.endpoints('sessions').map(async (pod) => (await scrape(pod))(series) ?? 0))
  const routers: AsyncDisposable[] = []
  const disconnect = async (): Promise<void> => {
    for (const one of routers.splice(0)) await one[Symbol.asyncDispose]()
  }
  onTestFinished(disconnect)
  const traffic = trafficOf({ ...network, controllers: [cluster.addressOf('control')] }, (one) => {
    routers.push(one)
    return one
  })

  for (const one of [gateway, policy, sessions]) await one.evaluate(0)
  await expectReplicas(2, 2, 2) // the least; their manifests have no number
  for (const one of [gateway, policy, sessions])
    for (const average of Object.values(await one.evaluate(15))) expect(average).toBeGreaterThan(0)

  for (const name of ['second', 'third']) await traffic.router(name)
  expect(await sessions.evaluate(30)).toMatchObject({ overlay_routers_connected: 1.5 })
  await expectReplicas(2, 2, 3)
  await until(async () => (await ofSessions('overlay_rpc_call_seconds_count')).every((count) => count > 0))

  await disconnect()
  await until(
    async () => (await ofSessions('overlay_routers_connected')).filter((count) => count > 0).join() === '1',
  )
  await sessions.evaluate(329)
  await expectReplicas(2, 2, 3) // it was needed less than five minutes ago
  await sessions.evaluate(330)
  await expectReplicas(2, 2, 2)
})

function withTarget(objects: readonly KubernetesObject[], metric: string, averageValue: string) {
  const others = structuredClone(objects)
  for (const { kind, spec } of others)
    if (kind === 'HorizontalPodAutoscaler')
      for (const { pods } of spec.metrics)
        if (pods?.metric.name === metric) pods.target.averageValue = averageValue
  return others
}
