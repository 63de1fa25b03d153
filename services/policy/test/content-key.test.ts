import type { Position } from '@overlay/rpc'
import { noQuery } from '@overlay/store/kind-store'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { admin, as, type Network, openNetwork, type Replica } from './network.js'

let network: Network
let writer: Replica
/** Its memory is behind what `writer` has written, while its pages show it. */
let lagging: Replica
beforeAll(async () => {
  network = await openNetwork()
  writer = await network.replica()
  lagging = await network.replica({ isDeaf: true })
})
afterAll(() => network[Symbol.asyncDispose]())

let count = 0
/** Two identities with the same service, and a config that only one of them is to get. */
async function twins() {
  const n = ++count
  const [alice, bob] = [`alice${n}`, `bob${n}`]
  for (const id of [alice, bob]) await network.identity.put(id, { isAdmin: false })
  const type = await writer.create('config-types', { name: `type${n}` })
  const config = (of: string) =>
    writer.create('configs', { name: `${of}${n}`, configTypeId: type, data: { of } })
  const [shared, secret] = [await config('shared'), await config('secret')]
  const service = await writer.create('services', {
    name: `service${n}`,
    encryptionRequired: true,
    configs: [shared],
  })
  const policy = await writer.create('service-policies', {
    name: `policy${n}`,
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`@${alice}`, `@${bob}`],
    serviceRoles: [`@${service}`],
  })
  for (const replica of [writer, lagging])
    await replica.engine.catchUp({ signal: AbortSignal.timeout(30_000) })

  const page = async (identityId: string, positions: Readonly<Record<string, Position>> = {}) => {
    const context = { ...as({ identityId, configTypes: ['all'] }), positions }
    const { rows, contentKey } = await lagging.entities.list(
      { kind: 'services', query: noQuery, within: undefined, perspective: undefined },
      context,
    )
    const [row] = JSON.parse(Buffer.from(rows).toString()) as { name: string; config: object }[]
    return { shown: row?.config, key: contentKey }
  }
  const keyOf = async (identityId: string) =>
    (await lagging.policy.getHeader({ identityId }, admin)).contentKey
  return { type: `type${n}`, alice, bob, service, policy, secret, page, keyOf }
}

test('identities with the same view share one page while nothing changes', async () => {
  const { type, alice, bob, page, keyOf } = await twins()
  const [first, second] = [await page(alice), await page(bob)]
  expect(first).toEqual(second)
  expect(first).toEqual({ shown: { [type]: { of: 'shared' } }, key: await keyOf(bob) })
  expect(first.key).not.toBe('')
})

test('a page that is ahead of memory is read again, and has the key of the newer view', async () => {
  const { type, alice, bob, service, secret, page, keyOf } = await twins()
  await writer.policy.putServiceConfigs(
    { identityId: alice, configs: [{ serviceId: service, configId: secret }] },
    admin,
  )
  const next = await page(alice)
  expect(next).toEqual({ shown: { [type]: { of: 'secret' } }, key: await keyOf(alice) })
  expect(next.key).not.toBe(await keyOf(bob))
})

test('a page that was read while access was lost is read again, without the service', async () => {
  const { alice, policy, page, keyOf } = await twins()
  await writer.remove('service-policies', policy)
  expect(await page(alice)).toEqual({ shown: undefined, key: await keyOf(alice) })
})

test('a page of an identity that is deleted meanwhile does not have the key of an empty view', async () => {
  const { alice, bob, page, keyOf } = await twins()
  await page(alice)
  let notified = 0
  using _listening = lagging.engine.onChange((ids) => {
    if (ids === 'all' || ids.includes(alice)) notified += 1
  })
  await network.identity.remove(alice)
  await lagging.engine.catchUp({ signal: AbortSignal.timeout(30_000) })
  expect(notified).toBeGreaterThan(0)
  expect(await keyOf(alice)).not.toBe((await page(bob)).key)
})

test('changes of other views leave a page its key', async () => {
  const { alice, bob, service, secret, page, keyOf } = await twins()
  await writer.policy.putServiceConfigs(
    { identityId: alice, configs: [{ serviceId: service, configId: secret }] },
    admin,
  )
  const { key } = await page(bob)
  expect(key).toBe(await keyOf(bob))
  expect(key).not.toBe('')
})
