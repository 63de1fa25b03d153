import type { Context, Fault } from '@overlay/rpc'
import { removeOldGuesses } from '@overlay/store/guesses'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  as,
  bytes,
  hashing,
  login,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'

let identity: TestIdentity
let one: Replica
let two: Replica
let statements: string[] = []
const lines: object[] = []
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica({ onStatement: (text) => statements.push(text) })
  two = await identity.replica({
    onRefusal: (facts, msg) => msg === 'identity locked' && lines.push({ ...facts, msg }),
  })
})
afterAll(() => identity[Symbol.asyncDispose]())

const refused = { code: 'INVALID_AUTH' }
const paused = {
  code: 'SERVER_TOO_MANY_REQUESTS',
  detail: expect.stringMatching(
    /^Too many attempts\. Wait (1 second|\d+ seconds|\d+ minutes), then try again\.$/,
  ),
}
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

const ofName = (username: string) =>
  sql`kind = 'password' and account = sha256(convert_to(${username}, 'UTF8'))`
/** Lets time pass for the pauses of the name. */
const age = (username: string, seconds: number) =>
  one.db.query(sql`
    update guess set settled_at = settled_at - ${seconds}::float8 * interval '1 second'
     where ${ofName(username)} and settled_at > '-infinity'`)
/** As if others had failed with the name from so many networks. */
const failEverywhere = (username: string, failures: number) =>
  one.db.query(sql`
    insert into guess (kind, account, source, settled_at)
    values ('password', sha256(convert_to(${username}, 'UTF8')), '*', now() + ${failures}::float8 * interval '1 minute')
        on conflict (kind, account, source) do update set settled_at = excluded.settled_at`)
/** As if so many other names had been tried at the address. */
const failWithOthers = (address: string, failures: number) =>
  one.db.query(sql`
    insert into guess (kind, account, source, settled_at)
    values ('password', '', ${address}, now() + ${failures * 15}::float8 * interval '1 second')
        on conflict (kind, account, source) do update set settled_at = excluded.settled_at`)

test('ten failures pause a name at their address, at every replica, and nowhere else', async () => {
  const { username } = await person()
  const [attacker, owner] = [newAddress(), newAddress()]
  await fail(5, username, attacker, one)
  await fail(5, username, attacker, two)
  for (const replica of [one, two])
    await expect(enter(username, 'right-one', attacker, replica)).rejects.toMatchObject(paused)
  await enter(username, 'right-one', owner)
  await enter((await person()).username, 'right-one', attacker)
})

test('a pause lapses', async () => {
  const { username } = await person()
  const address = newAddress()
  await fail(10, username, address)
  await expect(enter(username, 'right-one', address)).rejects.toMatchObject(paused)
  await age(username, 61)
  await enter(username, 'right-one', address)
})

test('failures count no longer after a success, nor after a minute for each', async () => {
  const { username } = await person()
  const address = newAddress()
  await fail(9, username, address)
  await enter(username, 'right-one', address)
  await fail(9, username, address)
  await age(username, 9 * 60)
  await fail(9, username, address)
  await enter(username, 'right-one', address)
})

test('addresses of one IPv6 network count together', async () => {
  const { username } = await person()
  for (let host = 0; host < 10; host++) await fail(1, username, `2001:db8:0:7::${host.toString(16)}`)
  await expect(enter(username, 'right-one', '2001:db8:0:7:ffff::1')).rejects.toMatchObject(paused)
  await enter(username, 'right-one', '2001:db8:0:8::1')
})

test('a name that many networks fail with is paused, but not where it has logged in before', async () => {
  const { username } = await person()
  const owner = newAddress()
  await enter(username, 'right-one', owner)
  await fail(1, username, newAddress())
  await failEverywhere(username, 100)
  await expect(enter(username, 'right-one', newAddress())).rejects.toMatchObject(paused)
  await enter(username, 'right-one', owner)
  await age(username, 61)
  await enter(username, 'right-one', newAddress())
})

test('failures of all networks count for the name', async () => {
  const { username } = await person()
  await failEverywhere(username, 99)
  await fail(1, username, newAddress())
  await expect(enter(username, 'right-one', newAddress())).rejects.toMatchObject(paused)
})

test('of guesses that come at once no more are compared than of those that come one by one', async () => {
  const { username } = await person()
  const address = newAddress()
  await fail(1, username, address)
  await fail(8, username, address) // one more pauses
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
  await expect(guess()).rejects.toMatchObject(paused)
  await expect(enter(username, 'right-one', address)).rejects.toMatchObject(paused)
})

/** Statements since `statements` was emptied, without those that the replica runs by itself. */
const ofLogins = (): readonly string[] => statements.filter((text) => /authenticator|login_|guess/.test(text))

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
  expect(statements.filter((text) => /insert into (login_|guess)/.test(text))).toEqual([])
})

test('rows that have no effect are removed, and no others', async () => {
  const { username } = await person()
  const [owner, attacker, stranger] = [newAddress(), newAddress(), newName()]
  await enter(username, 'right-one', owner)
  await fail(1, username, attacker)
  await fail(1, stranger, attacker)
  await age(stranger, 61)
  await removeOldGuesses(one.db)
  const networks = async (name: string): Promise<readonly string[]> => {
    const { rows } = await one.db.query<{ source: string }>(sql`
      select source from guess where ${ofName(name)} order by source`)
    return rows.map(({ source }) => source)
  }
  expect(await networks(stranger)).toEqual([])
  expect(await networks(username)).toEqual(['*', owner, attacker].sort())
})

test('a source that tries many names is paused for names that are new there, at every replica', async () => {
  const [familiar, other] = [await person(), await person()]
  const address = newAddress()
  await enter(familiar.username, 'right-one', address)
  await failWithOthers(address, 199)
  await fail(1, newName(), address)
  for (const replica of [one, two]) {
    await expect(enter(newName(), 'wrong-one', address, replica)).rejects.toMatchObject(paused)
    await expect(enter(other.username, 'right-one', address, replica)).rejects.toMatchObject(paused)
    await enter(familiar.username, 'right-one', address, replica)
  }
  await enter(other.username, 'right-one', newAddress())
})

test('an account logs in from a familiar source while other sources fill the queue of hashes', async () => {
  const { username } = await person()
  const [owner, stranger] = [newAddress(), await person()]
  await enter(username, 'right-one', owner)
  const { running, waiting } = hashing
  const outcomes: string[] = []
  let login: Promise<string> | undefined
  await two.db.transaction(undefined, async (tx) => {
    await tx.query(sql`lock table guess in share mode`) // what runs waits for it when its guess is counted
    const isFull = new Promise<void>((resolve) => {
      for (let i = 0; i <= running + waiting; i++)
        void enter(newName(), 'wrong-one', newAddress()).catch((err: Fault) => {
          outcomes.push(err.code)
          resolve()
        })
    })
    await isFull
    await expect(enter(stranger.username, 'right-one', newAddress())).rejects.toMatchObject({
      code: paused.code,
    })
    const { length } = outcomes
    login = enter(username, 'right-one', owner).then(
      () => 'in',
      (err: Fault) => {
        outcomes.push(err.code)
        return err.code
      },
    )
    while (outcomes.length === length) await tx.query(sql`select`) // until one has made room
  })
  expect(await login).toBe('in')
})

test('a refusal says after how many seconds the pause ends', async () => {
  const { username } = await person()
  const address = newAddress()
  await fail(10, username, address)
  await one.db.query(sql`
    update guess set settled_at = now() + interval '9 minutes 42 seconds' where ${ofName(username)}`)
  const fault = await enter(username, 'right-one', address).catch((err: unknown) => err)
  expect(fault).toMatchObject(paused)
  const { retryAfterSeconds = 0 } = fault as Fault
  expect(retryAfterSeconds).toBeGreaterThan(0)
  expect(retryAfterSeconds).toBeLessThanOrEqual(42)
})

/** Rows of the audit about pauses, once there are so many. */
async function pausesOf(ids: readonly string[], count: number) {
  for (;;) {
    const { rows } = await one.db.query<{ after: { kind: string; scope: string; source: string } }>(sql`
      select entity_id as id, source_address as "from", request_id as request, after from audit
       where kind = 'guess-pauses' and entity_id = any(${ids}) order by array_position(${ids}::text[], entity_id), id`)
    if (rows.length >= count) return rows
  }
}

test('the audit has one row for each pause that begins, and none for names that do not exist', async () => {
  const { id, username } = await person()
  const [address, later, stranger] = [newAddress(), newAddress(), newName()]
  await fail(10, stranger, address)
  await fail(10, username, address)
  await age(username, 61)
  await fail(1, username, address) // prolongs it
  await expect(enter(username, 'right-one', address)).rejects.toMatchObject(paused)
  await age(username, 11 * 60)
  await fail(10, username, address)
  await failWithOthers(later, 199)
  await fail(1, stranger, later)
  const here = { from: address, request: expect.any(String), id }
  const after = { name: username, kind: 'password', scope: 'account-at-source', source: address }
  const others = { kind: 'password', scope: 'source', source: later }
  expect(await pausesOf([id, address, later], 3)).toEqual([
    { ...here, after },
    { ...here, after },
    { ...here, from: later, id: later, after: others },
  ])
})

test('an identity that its policy locks is logged with the source, and shown as disabled until', async () => {
  const { id, username } = await person({ maxAttempts: 3, lockoutDurationMinutes: 5 })
  const [address, elsewhere] = [newAddress(), newAddress()]
  await fail(1, username, address, one)
  await fail(1, username, elsewhere, two)
  lines.length = 0
  await fail(1, username, address, two)
  const { json } = await one.entities.get(
    { ref: { kind: 'identities', id }, perspective: undefined },
    system(),
  )
  expect(parsed(json)).toMatchObject({ disabled: true, disabledUntil: expect.any(String) })
  expect(lines).toMatchObject([{ msg: 'identity locked', identityId: id, username, sourceAddress: address }])
  await one.identity.enableIdentity({ kind: 'identities', id }, system())
  await enter(username, 'right-one', address)
})
