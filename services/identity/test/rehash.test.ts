import { hash, verify } from '@node-rs/argon2'
import { withClient } from '@overlay/launcher/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSession } from '../src/store/api-sessions.js'
import { replaceHash } from '../src/store/authenticators.js'
import { type Subject, subjectById } from '../src/store/subjects.js'
import {
  bytes,
  changesAfter,
  login,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'

let identity: TestIdentity
let one: Replica
let two: Replica
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const password = 'right-one'
const current = /^\$argon2id\$v=19\$m=3072,t=1,p=1\$/
/** The parameters of OpenZiti, with less memory than that of these tests. */
const imported = { memoryCost: 2048, timeCost: 1, parallelism: 4, salt: Buffer.alloc(10, 7) }
let count = 0

/** An identity whose password has this hash. */
async function personWith(stored: string) {
  const username = `person-${++count}`
  const { id: identityId } = await one.entities.create(
    { kind: 'identities', json: bytes({ name: username, type: 'Default', isAdmin: false }) },
    system(),
  )
  const proof = { method: 'updb', identityId, username, password }
  const { id } = await one.entities.create({ kind: 'authenticators', json: bytes(proof) }, system())
  await query('update authenticator set password = $1 where id = $2', stored, id)
  return { id, enter: (secret = password, replica = one) => enter(replica, username, secret) }
}

const query = async <T extends object>(text: string, ...values: unknown[]): Promise<T[]> =>
  withClient(identity.url, async (client) => (await client.query<T>(text, values)).rows)

const enter = (replica: Replica, username: string, secret: string) =>
  replica.identity.authenticate(login({ username, password: secret }), system())

const rowOf = async (id: string) =>
  (await query<{ password: string; updated_at: Date }>('select * from authenticator where id = $1', id))[0]

const auditRows = async (id: string) => query('select from audit where entity_id = $1', id)

test('a login replaces a weaker hash, which changes nothing else and ends no session', async () => {
  const { id, enter } = await personWith(await hash(password, imported))
  const [before, audit, head] = [await rowOf(id), await auditRows(id), await one.changeLog.head()]
  const sessions = [await enter(), await enter(), await enter(password, two)]
  const after = await rowOf(id)
  expect(after?.password).toMatch(current)
  expect(await verify(after?.password ?? '', password)).toBe(true)
  expect(after?.updated_at).toEqual(before?.updated_at)
  expect(await auditRows(id)).toHaveLength(audit.length)
  expect(await changesAfter(one.changeLog, head)).toEqual([])
  for (const { token } of sessions) await two.identity.getApiSession({ bearerTokens: [], token }, system())
})

test('simultaneous logins that compared the former hash all succeed', async () => {
  const { id, enter } = await personWith(await hash(password, imported))
  await Promise.all([one, two, one, two, one, two].map((replica) => enter(password, replica)))
  expect((await rowOf(id))?.password).toMatch(current)
})

test('a wrong password and a hash of greater cost replace nothing', async () => {
  const weak = await hash(password, imported)
  const first = await personWith(weak)
  await expect(first.enter('wrong-one')).rejects.toMatchObject({ code: 'INVALID_AUTH' })
  expect((await rowOf(first.id))?.password).toBe(weak)
  const strong = await hash(password, { memoryCost: 4096, timeCost: 2, parallelism: 1 })
  const second = await personWith(strong)
  await second.enter()
  expect((await rowOf(second.id))?.password).toBe(strong)
})

test('a password that is changed meanwhile stays, and ends the logins that compared the former hash', async () => {
  const [weak, stronger, changed] = [
    await hash(password, imported),
    await hash(password),
    await hash('other-one'),
  ]
  const { id } = await personWith(weak)
  const compared = await subjectById(one.db, id)
  const open = () =>
    openSession(one.db, {
      ...(compared as Subject),
      ipAddress: '',
      configTypes: [],
      isCertExtendable: false,
    })
  await replaceHash(one.db, id, weak, stronger)
  expect(await open()).toBeDefined()
  await query('update authenticator set password = $1 where id = $2', changed, id)
  expect(await open()).toBeUndefined()
  await replaceHash(one.db, id, stronger, weak)
  expect((await rowOf(id))?.password).toBe(changed)
})
