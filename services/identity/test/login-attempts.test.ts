import type { Context, Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { removeOldAttempts } from '../src/store/login-attempts.js'
import { as, bytes, login, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let identity: TestIdentity
let one: Replica
let two: Replica
let statements: string[] = []
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica({ onStatement: (text) => statements.push(text) })
  two = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const refused = { code: 'INVALID_AUTH' }
const paused = { code: 'SERVER_TOO_MANY_REQUESTS' }
let count = 0
const newName = (): string => `name-${++count}`
let lastHost = 0
/** Addresses that no other test uses. */
const newAddress = (): string => `10.0.${Math.floor(++lastHost / 256)}.${lastHost % 256}`

const from = (sourceAddress: string, context: Context = system()): Context => ({ ...context, sourceAddress })
const enter = (username: string, password: string, address: string, replica = one) =>
  replica.identity.authenticate(login({ username, password }), from(address))
const fail = async (times: number, username: string, address: string, replica = one): Promise<void> => {
  for (let i = 0; i < times; i++)
    await expect(enter(username, 'wrong-one', address, replica)).rejects.toMatchObject(refused)
}
const create = async (kind: string, body: object): Promise<string> =>
  (await one.entities.create({ kind, json: bytes(body) }, system())).id

async function person(updb: object = {}) {
  const username = newName()
  const authPolicyId = await create('auth-policies', {
    name: `policy of ${username}`,
    primary: {
      cert: { allowed: true, allowExpiredCerts: false },
      extJwt: { allowed: true, allowedSigners: [] },
      updb: {
        allowed: true,
        minPasswordLength: 5,
        requireSpecialChar: false,
        requireNumberChar: false,
        requireMixedCase: false,
        maxAttempts: 0,
        lockoutDurationMinutes: 0,
        ...updb,
      },
    },
    secondary: { requireTotp: false },
  })
  const body = { name: username, type: 'Default', isAdmin: false, authPolicyId }
  const id = await create('identities', body)
  const proof = { method: 'updb', identityId: id, username, password: 'right-one' }
  return { id, username, authenticatorId: await create('authenticators', proof) }
}

/** Makes the failures of the name that many seconds older. */
const age = (username: string, seconds: number) =>
  one.db.query(sql`
    update login_source set failed_at = failed_at - ${seconds}::float8 * interval '1 second'
     where name_digest = sha256(convert_to(${username}, 'UTF8'))`)
/** Keeps a pause that has begun from lapsing, however slow the machine. */
const hold = (username: string) => age(username, -3600)
/** As if others had failed with the name from so many networks. */
const failEverywhere = (username: string, failures: number) =>
  one.db.query(sql`
    insert into login_source (name_digest, source, failures, failed_at)
    values (sha256(convert_to(${username}, 'UTF8')), '*', ${failures}, now())
        on conflict (name_digest, source) do update set failures = excluded.failures, failed_at = now()`)

test('ten failures pause a name at their address, at every replica, and nowhere else', async () => {
  const { username } = await person()
  const [attacker, owner] = [newAddress(), newAddress()]
  await fail(5, username, attacker, one)
  await fail(5, username, attacker, two)
  await hold(username)
  for (const replica of [one, two])
    await expect(enter(username, 'right-one', attacker, replica)).rejects.toMatchObject(paused)
  await enter(username, 'right-one', owner)
  await enter((await person()).username, 'right-one', attacker)
})

test('a pause lapses', async () => {
  const { username } = await person()
  const address = newAddress()
  await fail(10, username, address)
  await hold(username)
  await expect(enter(username, 'right-one', address)).rejects.toMatchObject(paused)
  await age(username, 3600 + 60)
  await enter(username, 'right-one', address)
})

test('failures count no longer after a success, nor after a quarter of an hour', async () => {
  const { username } = await person()
  const address = newAddress()
  await fail(9, username, address)
  await enter(username, 'right-one', address)
  await fail(9, username, address)
  await age(username, 15 * 60)
  await fail(9, username, address)
  await enter(username, 'right-one', address)
})

test('addresses of one IPv6 network count together', async () => {
  const { username } = await person()
  for (let host = 0; host < 10; host++) await fail(1, username, `2001:db8:0:7::${host.toString(16)}`)
  await hold(username)
  await expect(enter(username, 'right-one', '2001:db8:0:7:ffff::1')).rejects.toMatchObject(paused)
  await enter(username, 'right-one', '2001:db8:0:8::1')
})

test('a name that many networks fail with is paused, but not where it has logged in before', async () => {
  const { username } = await person()
  const owner = newAddress()
  await enter(username, 'right-one', owner)
  await fail(1, username, newAddress())
  await failEverywhere(username, 100)
  await hold(username)
  await expect(enter(username, 'right-one', newAddress())).rejects.toMatchObject(paused)
  await enter(username, 'right-one', owner)
  await age(username, 3600 + 60)
  await enter(username, 'right-one', newAddress())
})

test('failures of all networks count for the name', async () => {
  const { username } = await person()
  await failEverywhere(username, 99)
  await fail(1, username, newAddress())
  await hold(username)
  await expect(enter(username, 'right-one', newAddress())).rejects.toMatchObject(paused)
})

test('of guesses that come at once no more are compared than of those that come one by one', async () => {
  const { username } = await person()
  const address = newAddress()
  await fail(1, username, address)
  // the next failure pauses for a minute
  await one.db.query(sql`update login_source set failures = 20, failed_at = now() - interval '1 minute'
     where name_digest = sha256(convert_to(${username}, 'UTF8'))`)
  const guesses = Array.from({ length: 40 }, () => enter(username, 'wrong-one', address))
  const outcomes = await Promise.allSettled(guesses)
  const codes = outcomes.map((outcome) =>
    outcome.status === 'rejected' ? (outcome.reason as Fault).code : '',
  )
  const compared = codes.filter((code) => code === refused.code).length
  expect([1, 2]).toContain(compared) // two run at once
  expect(codes.filter((code) => code === paused.code)).toHaveLength(40 - compared)
})

test('enabling an identity ends the pause of its name', async () => {
  const { id, username } = await person()
  const address = newAddress()
  await fail(10, username, address)
  await hold(username)
  await expect(enter(username, 'right-one', address)).rejects.toMatchObject(paused)
  await one.identity.enableIdentity({ kind: 'identities', id }, system())
  await enter(username, 'right-one', address)
})

test('a wrong current password pauses the name too', async () => {
  const { id: identityId, username, authenticatorId: id } = await person()
  const address = newAddress()
  const guess = () =>
    one.identity.updateOwnAuthenticator(
      {
        ref: { kind: 'authenticators', id },
        json: bytes({ currentPassword: 'wrong-one', password: 'mine-now' }),
        mask: ['password'],
      },
      from(address, as({ identityId })),
    )
  for (let i = 0; i < 10; i++) await expect(guess()).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  await hold(username)
  await expect(guess()).rejects.toMatchObject(paused)
  await expect(enter(username, 'right-one', address)).rejects.toMatchObject(paused)
})

/** Statements since `statements` was emptied, without those that the replica runs by itself. */
const ofLogins = (): readonly string[] => statements.filter((text) => /authenticator|login_/.test(text))

test('every refusal runs the same statements, whether or not the name exists', async () => {
  const address = newAddress()
  const ran = async (username: string, password = 'wrong-one'): Promise<readonly string[]> => {
    statements = []
    await expect(enter(username, password, address)).rejects.toMatchObject(refused)
    return ofLogins()
  }
  const unknown = await ran(newName())
  expect(unknown).toHaveLength(3)
  const disabled = await person()
  await one.identity.disableIdentity({ id: disabled.id, durationMinutes: 0 }, system())
  expect(await ran((await person()).username)).toEqual(unknown)
  expect(await ran((await person({ maxAttempts: 3 })).username)).toEqual(unknown)
  expect(await ran((await person({ allowed: false })).username, 'right-one')).toEqual(unknown)
  expect(await ran(disabled.username)).toEqual(unknown)
  expect(await ran(disabled.username, 'right-one')).toEqual(unknown)
  expect(await ran(identity.admin.username)).toEqual(unknown)
})

test('a paused name is refused before anything is read of it, whether or not it exists', async () => {
  const address = newAddress()
  const ran = async (username: string): Promise<readonly string[]> => {
    await fail(10, username, address)
    await hold(username)
    statements = []
    await expect(enter(username, 'right-one', address)).rejects.toMatchObject(paused)
    return ofLogins()
  }
  const unknown = await ran(newName())
  expect(unknown).toHaveLength(1)
  expect(await ran((await person()).username)).toEqual(unknown)
})

test('a login from where the name has just logged in writes nothing about it', async () => {
  const { username } = await person()
  const address = newAddress()
  await enter(username, 'right-one', address)
  statements = []
  await enter(username, 'right-one', address)
  expect(statements.filter((text) => /insert into login_/.test(text))).toEqual([])
})

test('rows that have no effect are removed, and no others', async () => {
  const { username } = await person()
  const [owner, attacker, stranger] = [newAddress(), newAddress(), newName()]
  await enter(username, 'right-one', owner)
  await fail(1, username, attacker)
  await fail(1, stranger, attacker)
  await age(stranger, 15 * 60 + 1)
  await removeOldAttempts(one.db)
  const networks = async (name: string): Promise<readonly string[]> => {
    const { rows } = await one.db.query<{ source: string }>(sql`
      select source from login_source where name_digest = sha256(convert_to(${name}, 'UTF8')) order by source`)
    return rows.map(({ source }) => source)
  }
  expect(await networks(stranger)).toEqual([])
  expect(await networks(username)).toEqual(['*', owner, attacker].sort())
})
