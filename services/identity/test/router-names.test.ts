import type { Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { identityStateMethods } from '../src/methods/identity-state-methods.js'
import { removeRouterIdentities, storeRouterIdentity } from '../src/store/router-identities.js'
import { bytes, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let started: TestIdentity
let identity: Replica
beforeAll(async () => {
  started = await testIdentity()
  identity = await started.replica()
})
afterAll(() => started[Symbol.asyncDispose]())

const refused = { code: 'COULD_NOT_VALIDATE', detail: { field: 'name' } }
let count = 0
const newName = () => `name-${count++}`
const create = (name: string) =>
  identity.entities.create(
    { kind: 'identities', json: bytes({ name, type: 'Device', isAdmin: false }) },
    system(),
  )
const rename = (id: string, name: string) =>
  identity.entities.update(
    { ref: { kind: 'identities', id }, json: bytes({ name }), mask: ['name'] },
    system(),
  )
const reserve = (routerId: string, name: string) =>
  identity.identity.reserveRouterName({ routerId, name }, system())
const release = (routerId: string, name: string) =>
  identity.identity.releaseRouterName({ routerId, name }, system())
const lapse = (name: string) =>
  identity.db.query(sql`update reserved_name set until = now() - interval '1 second' where name = ${name}`)

test('a name that an identity or another router has is not reserved', async () => {
  const [name, other] = [newName(), newName()]
  await create(name)
  await expect(reserve('r1', name)).rejects.toMatchObject(refused)
  await reserve('r1', other)
  await reserve('r1', other)
  await expect(reserve('r2', other)).rejects.toMatchObject(refused)
})

test('no identity gets a reserved name, by create or by rename, until it is released', async () => {
  const name = newName()
  const { id } = await create(newName())
  await reserve('r1', name)
  await expect(create(name)).rejects.toMatchObject(refused)
  await expect(rename(id, name)).rejects.toMatchObject(refused)
  await release('r2', name)
  await expect(create(name)).rejects.toMatchObject(refused)
  await release('r1', name)
  await create(name)
})

test('of an identity and a router with one name, one is refused, however they meet', async () => {
  for (let round = 0; round < 30; round++) {
    const name = newName()
    const outcomes = await Promise.allSettled([create(name), reserve(`r-${name}`, name), create(newName())])
    expect(outcomes.slice(0, 2).filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(outcomes[2]?.status).toBe('fulfilled')
  }
})

test('the identity of the router takes the name and ends the reservation', async () => {
  const [name, next] = [newName(), newName()]
  await reserve('r3', name)
  const { db } = identity
  const named = async () => (await db.query(sql`select name, type from identity where id = 'r3'`)).rows
  await db.transaction(undefined, (tx) => storeRouterIdentity(tx, 'r3', name))
  expect(await named()).toEqual([{ name, type: 'Router' }])
  expect((await db.query(sql`select from reserved_name where name = ${name}`)).rows).toEqual([])
  await reserve('r3', next)
  await db.transaction(undefined, (tx) => storeRouterIdentity(tx, 'r3', next))
  expect(await named()).toEqual([{ name: next, type: 'Router' }])
  await create(name)
  await db.transaction(undefined, (tx) => removeRouterIdentities(tx, ['r3']))
  await create(next)
})

test('the reservation of a router that was never written lapses', async () => {
  const name = newName()
  await reserve('r1', name)
  await lapse(name)
  await expect(create(name)).rejects.toMatchObject(refused)
  await reserve('r2', name)
})

/** Reserves while the changes of routers are followed only when the method waits for them. */
const reserveAfter = (routerId: string, name: string, follow: () => Promise<unknown>) =>
  identityStateMethods({
    changeLog: identity.changeLog,
    routers: {
      catchUp: async () => {
        await follow()
      },
    },
    waitForFollowers: async (written) => written,
  }).reserveRouterName({ routerId, name }, system())
const inTransaction = <T>(work: (tx: Tx) => Promise<T>) => identity.db.transaction(undefined, work)
const store = (id: string, name: string) => inTransaction((tx) => storeRouterIdentity(tx, id, name))

test('a router gets the name of one that was deleted or renamed, though that is not followed yet', async () => {
  const [name, next] = [newName(), newName()]
  await store('r5', name)
  await reserveAfter('r6', name, () => store('r5', next))
  await reserveAfter('r6', next, () => inTransaction((tx) => removeRouterIdentities(tx, ['r5'])))
})

test('a reservation that lapses is kept until the changes of its time are followed', async () => {
  const name = newName()
  await reserve('r7', name)
  await lapse(name)
  await expect(reserveAfter('r8', name, () => store('r7', name))).rejects.toMatchObject(refused)
  const other = newName()
  await reserve('r7', other)
  await lapse(other)
  await expect(
    reserveAfter('r8', other, () => Promise.reject(new Error('sessions is away'))),
  ).rejects.toThrow('sessions is away')
  await expect(create(other)).rejects.toMatchObject(refused)
})
