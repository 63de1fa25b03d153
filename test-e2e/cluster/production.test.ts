import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, onTestFailed, test } from 'vitest'
import { render } from '../kubernetes/kustomize.js'
import { type Clients, startClients } from './clients.js'
import type { Cluster } from './cluster.js'
import { canFilter } from './network-policies.js'
import { documentedSecrets, type Operator, startOperator } from './operator.js'
import { logIn, started, startOverlay } from './tested.js'

let operator: Operator
let cluster: Cluster
let clients: Clients
beforeAll(async () => {
  operator = await startOperator()
  const objects = [...(await render('overlays/production')).objects, ...operator.secrets]
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
  const { server, admin } = await logIn(cluster)
  clients = await startClients(server, admin, cluster.addressOf('control'))
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
