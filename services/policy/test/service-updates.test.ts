import { getEventListeners } from 'node:events'
import type { Positions } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readUpdates } from '../src/store/service-updates.js'
import { as, type Network, openNetwork, type Replica } from './network.js'

let network: Network
beforeEach(async () => {
  network = await openNetwork()
})
afterEach(() => network[Symbol.asyncDispose]())

const header = (replica: Replica, identityId: string, positions: Positions = {}) =>
  replica.policy.getHeader({ identityId }, { ...as({}), positions })
const timeOf = async (...args: Parameters<typeof header>) => (await header(...args)).lastChangeAtMs
const whole = (replica: Replica) => replica.engine.catchUp({ signal: AbortSignal.timeout(30_000) })

/** Alice and bob may dial the wiki. */
async function wiki(replica: Replica) {
  await network.identity.put('alice', { isAdmin: false, roleAttributes: ['staff'] })
  await network.identity.put('bob', { isAdmin: false, roleAttributes: ['staff'] })
  await network.identity.put('eve', { isAdmin: false })
  const service = await replica.create('services', { name: 'wiki', encryptionRequired: true })
  const policy = await replica.create('service-policies', {
    name: 'staff',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#staff'],
    serviceRoles: [`@${service}`],
  })
  await whole(replica)
  return { service, policy }
}

test('the time moves at once for those whom a change concerns, to the time of the change', async () => {
  const replica = await network.replica()
  const { service } = await wiki(replica)
  const before = await Promise.all(['alice', 'eve'].map((id) => timeOf(replica, id)))
  const position = await replica.update('services', service, { tags: { a: 1 } })
  const positions: Positions = position ? { policy: position } : {}
  const after = await Promise.all(['alice', 'eve'].map((id) => timeOf(replica, id, positions)))
  expect(after[0]).toBeGreaterThan(before[0] ?? 0)
  expect(after[1]).toBe(before[1])
})

test('every replica answers the same time, whichever replica made the change', async () => {
  const [one, other] = [await network.replica(), await network.replica()]
  const { service } = await wiki(one)
  await whole(other)
  for (const replica of [one, other, one]) {
    const position = await replica.update('services', service, { tags: { a: Math.random() } })
    const positions: Positions = position ? { policy: position } : {}
    await Promise.all(
      [one, other].map((each) => each.engine.waitFor(positions, { signal: AbortSignal.timeout(30_000) })),
    )
    await expect.poll(async () => (await timeOf(one, 'alice')) - (await timeOf(other, 'alice'))).toBe(0)
  }
})

test('the time is the same after a restart, also where other things have changed meanwhile', async () => {
  const first = await network.replica()
  await wiki(first)
  const before = await timeOf(first, 'alice')
  expect(before).toBeGreaterThan(0)
  await first[Symbol.asyncDispose]()
  await network.identity.put('carol', { isAdmin: false })

  const second = await network.replica()
  await whole(second)
  expect(await timeOf(second, 'alice')).toBe(before)
})

test('an identity that changed while no replica ran has another time afterwards', async () => {
  const first = await network.replica()
  await wiki(first)
  const [alice, bob] = [await timeOf(first, 'alice'), await timeOf(first, 'bob')]
  await first[Symbol.asyncDispose]()
  await network.identity.put('alice', { isAdmin: false, roleAttributes: [] })

  const second = await network.replica()
  await expect.poll(() => timeOf(second, 'alice')).toBeGreaterThan(alice)
  expect(await timeOf(second, 'bob')).toBe(bob)
})

const timesKept = async (replica: Replica, like: string) => {
  const { rows } = await replica.changeLog.db.query<{ id: string }>(
    sql`select identity_id as id from service_update where identity_id like ${like} order by 1`,
  )
  return rows.map(({ id }) => id)
}

test('a deleted identity leaves no time, also when it is deleted right after a change', async () => {
  const replicas = [await network.replica(), await network.replica()]
  const [one] = replicas
  if (!one) return
  await wiki(one)
  const ids = Array.from({ length: 40 }, (_, n) => `many${n}`)
  await Promise.all(ids.map((id) => network.identity.put(id, { isAdmin: false, roleAttributes: ['staff'] })))
  await expect.poll(async () => (await timesKept(one, 'many%')).length).toBe(ids.length)
  for (const id of ids) {
    await network.identity.put(id, { isAdmin: false, roleAttributes: [] })
    await network.identity.remove(id)
  }
  await expect.poll(() => timesKept(one, 'many%')).toEqual([])
  await network.identity.put('last', { isAdmin: false, roleAttributes: ['staff'] })
  await expect.poll(() => timesKept(one, 'last')).toEqual(['last']) // all that came before is stored
  expect(await timesKept(one, 'many%')).toEqual([])
})

test('an identity that was deleted while no replica ran leaves no time', async () => {
  const first = await network.replica()
  await wiki(first)
  await expect.poll(() => timesKept(first, '%')).toContain('bob')
  await first[Symbol.asyncDispose]()
  await network.identity.put('alice', { isAdmin: false, roleAttributes: [] })
  await network.identity.remove('alice')
  await network.identity.remove('bob')

  const second = await network.replica()
  await whole(second)
  await network.identity.put('last', { isAdmin: false, roleAttributes: ['staff'] })
  await expect.poll(() => timesKept(second, 'last')).toEqual(['last'])
  for (const id of ['alice', 'bob']) await expect.poll(() => timesKept(second, '%')).not.toContain(id)
})

test('when the replica that stores stops, another takes over', async () => {
  const first = await network.replica()
  const { service } = await wiki(first)
  const second = await network.replica()
  await whole(second)
  const before = await timeOf(second, 'alice')
  await first[Symbol.asyncDispose]()
  const position = await second.update('services', service, { tags: { a: 2 } })
  const after = await timeOf(second, 'alice', position ? { policy: position } : {})
  expect(after).toBeGreaterThan(before)
  await second[Symbol.asyncDispose]()

  const third = await network.replica()
  await whole(third)
  expect(await timeOf(third, 'alice')).toBe(after)
})

test('a replica that is cut off from the database stores again later, it or another', async () => {
  const [one, other] = [await network.replica(), await network.replica()]
  const { service } = await wiki(one)
  await whole(other)
  await network.cut('policy service-updates')
  const position = await one.update('services', service, { tags: { a: 3 } })
  const positions: Positions = position ? { policy: position } : {}
  const time = await timeOf(one, 'alice', positions)
  expect(await timeOf(other, 'alice', positions)).toBe(time) // the other can store it where the first cannot
  await one[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()

  const next = await network.replica()
  await whole(next)
  expect(await timeOf(next, 'alice')).toBe(time)
})

test('a replica that takes over after a failover moves no time', async () => {
  const [first, second] = [await network.replica(), await network.replica()]
  const { service } = await wiki(first)
  await whole(second)
  const before = await timeOf(second, 'eve')
  await network.owner.query(sql`update stream set wal = '00000000'`) // as another server has it
  const change = async (tags: object, ...replicas: readonly Replica[]) => {
    const position = await second.update('services', service, { tags })
    await Promise.all(replicas.map(whole))
    await expect
      .poll(async () => (await readUpdates(network.owner, 0)).covered.policy)
      .toEqual(expect.objectContaining({ timeline: position?.timeline, number: position?.number }))
  }
  await change({ a: 1 }, first, second)
  await first[Symbol.asyncDispose]()
  await change({ a: 2 }, second)
  expect(await timeOf(second, 'eve')).toBe(before)
})

test('equal views have equal keys, in every replica; what a list shows changes them', async () => {
  const [one, other] = [await network.replica(), await network.replica()]
  const { service } = await wiki(one)
  await whole(other)
  const key = async (replica: Replica, id: string) => (await header(replica, id)).contentKey
  const shared = await key(one, 'alice')
  expect([await key(other, 'alice'), await key(one, 'bob'), await key(other, 'bob')]).toEqual([
    shared,
    shared,
    shared,
  ])
  expect(await key(one, 'eve')).not.toBe(shared)
  await one.update('services', service, { maxIdleTimeMillis: 7 })
  await whole(one)
  expect(await key(one, 'alice')).not.toBe(shared)
})

test('a watch names the identities whose headers change, and sends a message each second without changes', async () => {
  const replica = await network.replica()
  const { service } = await wiki(replica)
  const stop = new AbortController()
  const changed = new Set<string>()
  let silent = 0
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(30_000)])
  for await (const { identityIds, all, positions } of replica.policy.watchHeaders(
    { grants: false },
    {
      ...as({}),
      signal,
    },
  )) {
    expect(all).toBe(false)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1) // for any number of messages
    if (changed.size === 0 && silent === 0) void replica.update('services', service, { tags: { b: 1 } })
    for (const id of identityIds) changed.add(id)
    if (identityIds.length === 0) silent += 1
    expect(positions.identity?.number).toBeGreaterThan(0)
    if (changed.size === 2 && silent > 1) stop.abort()
  }
  expect([...changed].sort()).toEqual(['alice', 'bob'])
})

test('a service serves its own rows before other services answer', async () => {
  const missing = {
    schema: 'identity',
    load: () => {
      throw new Error('away')
    },
    watch: () => {
      throw new Error('away')
    },
    pull: () => Promise.reject(new Error('away')),
    row: () => Promise.reject(new Error('away')),
  }
  const replica = await network.replica({ identity: missing, waitMs: 100 })
  const id = await replica.create('services', { name: 'early', encryptionRequired: true })
  expect(await replica.list('config-types', {})).toHaveLength(5)
  expect(await replica.get('services', id)).toMatchObject({ id })
})
