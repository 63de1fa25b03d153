import { once } from 'node:events'
import type { Source } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { admin, as, named, networkOfFile } from './network.js'

const { network, policy } = await networkOfFile()

/** Counts pulls. Without pushes and notifications, only reads lead to them. */
function pulled({ source }: { readonly source: Source }) {
  let pulls = 0
  const counting: Source = {
    ...source,
    async *watch(after, signal) {
      yield { upto: after, after, changes: [], more: false, ageMs: 0 }
      await once(signal, 'abort')
    },
    pull(...about) {
      pulls++
      return source.pull(...about)
    },
  }
  return { source: counting, count: () => pulls }
}

const identity = pulled(network.identity)
const sessions = pulled(network.sessions)
const reader = await network.replica({
  identity: identity.source,
  sessions: sessions.source,
  isDeaf: true,
})
await network.identity.put('alice', { roleAttributes: ['staff'] })
await network.sessions.put('router', {})
await reader.engine.catchUp({ signal: AbortSignal.timeout(30_000) })

const policyId = await policy.create(
  'service-policies',
  named({ type: 'Dial', semantic: 'AnyOf', identityRoles: ['#guests'], serviceRoles: ['#all'] }),
)
const configId = await policy.create(
  'configs',
  named({ configTypeId: 'NH5p4FpGR', data: { protocol: 'tcp', address: 'localhost', port: 80 } }),
)
const serviceId = await policy.create('services', named({ encryptionRequired: true }))

const select = (kind: string, id: string, link: string) =>
  reader.entities.select({ from: { kind, id }, link, perspective: undefined }, admin)

const reads = [
  ['a config', () => reader.get('configs', configId), []],
  ['a list of configs', () => reader.list('configs'), []],
  ['a service policy', () => reader.get('service-policies', policyId), []],
  ['a service', () => reader.get('services', serviceId), ['identity']],
  ['a list of services', () => reader.list('services'), ['identity']],
  ['the policies of a service', () => select('services', serviceId, 'service-policies'), []],
  ['the identities of a service', () => select('services', serviceId, 'identities'), []],
  ['the services of an identity', () => select('identities', 'alice', 'services'), ['identity']],
  ['the identities of a router', () => select('edge-routers', 'router', 'identities'), ['sessions']],
] as const

/** How often a read asks identity and sessions. */
async function asks(read: () => Promise<unknown>): Promise<number[]> {
  const before = [identity.count(), sessions.count()]
  await read()
  return [identity.count(), sessions.count()].map((count, at) => count - (before[at] ?? 0))
}

test.each(reads)(
  "an administrator's read of %s asks each owner of what it shows once if memory is behind it, and no other",
  async (_name, read, owners) => {
    const asked = async () => {
      await network.identity.put('alice', { roleAttributes: ['staff'] })
      await network.sessions.put('router', {})
      return asks(read)
    }
    // the data models of routers ask, too, some time after memory has changed
    await expect
      .poll(asked)
      .toEqual(['identity', 'sessions'].map((owner) => Number(owners.some((one) => one === owner))))
  },
)

test.each(reads)('a read of %s asks no owner while memory is current', async (_name, read) => {
  await reader.engine.catchUp({ signal: AbortSignal.timeout(30_000) })
  expect(await asks(read)).toEqual([0, 0])
})

test('reads of services at the same time ask identity once', async () => {
  await network.identity.put('alice', { roleAttributes: ['staff'] })
  expect(await asks(() => Promise.all([1, 2, 3, 4].map(() => reader.get('services', serviceId))))).toEqual([
    1, 0,
  ])
})

test('an administrator reads what other services and replicas had at the request', async () => {
  const permissions = async () =>
    (await reader.get('services', serviceId, as({ identityId: 'alice', isAdmin: true }))).permissions
  expect(await permissions()).toEqual(['Invalid'])
  await network.identity.put('alice', { roleAttributes: ['guests'] })
  expect(await permissions()).toEqual(['Dial'])
  await policy.remove('service-policies', policyId)
  expect(await permissions()).toEqual(['Invalid'])
})

test('commits that the database has lost are not read from memory', async () => {
  await network.identity.put('alice', { roleAttributes: ['staff'] })
  await reader.engine.catchUp({ signal: AbortSignal.timeout(30_000) })
  await network.owner.query(sql`update identity.stream set number = number - 1`)
  const before = identity.count()
  await reader.get('services', serviceId)
  expect(identity.count()).toBeGreaterThan(before)
  await network.owner.query(sql`update identity.stream set number = number + 1`)
})

test('while heads cannot be read, lists answer from memory', async () => {
  const impatient = await network.replica({ waitMs: 100 })
  const isLoaded = () =>
    impatient.engine.catchUp({ signal: AbortSignal.timeout(30_000) }).then(
      () => true,
      () => false,
    )
  await expect.poll(isLoaded).toBe(true)
  await network.owner.transaction(undefined, async (tx) => {
    await tx.query(sql`lock table sessions.stream`)
    const selecting = impatient.entities.select(
      { from: { kind: 'services', id: serviceId }, link: 'service-policies', perspective: undefined },
      admin,
    )
    expect((await selecting).ids).toEqual([])
  })
})
