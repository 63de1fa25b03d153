import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { reapSessions } from '../src/jobs/housekeeping.js'
import { authority, certify, type Holder } from './certificates.js'
import {
  as,
  bytes,
  changesAfter,
  lockWaits,
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
let signer: Holder
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
  signer = await authority('signer')
  identity.world.trusted = [signer.certificate.toString()]
})
afterAll(() => identity[Symbol.asyncDispose]())

let count = 0
const create = async (kind: string, body: object): Promise<string> =>
  (await one.entities.create({ kind, json: bytes(body) }, system())).id
const update = (kind: string, id: string, body: object, mask: readonly string[], context = system()) =>
  one.entities.update({ ref: { kind, id }, json: bytes(body), mask: [...mask] }, context)

const updb = {
  allowed: true,
  minPasswordLength: 5,
  requireSpecialChar: false,
  requireNumberChar: false,
  requireMixedCase: false,
  maxAttempts: 0,
  lockoutDurationMinutes: 0,
}
const makePolicy = (): Promise<string> =>
  create('auth-policies', {
    name: `policy ${++count}`,
    primary: {
      cert: { allowed: true, allowExpiredCerts: false },
      extJwt: { allowed: true, allowedSigners: [] },
      updb,
    },
    secondary: { requireTotp: false },
  })
const forbid = (policyId: string, method: 'updb' | 'cert') =>
  update('auth-policies', policyId, { primary: { [method]: { allowed: false } } }, [
    `primary.${method}.allowed`,
  ])

/** An identity with a password and a certificate. */
async function person(more: object = {}) {
  const username = `person-${++count}`
  const identityId = await create('identities', {
    name: username,
    type: 'Default',
    isAdmin: false,
    authPolicyId: await makePolicy(),
    ...more,
  })
  const proof = { method: 'updb', identityId, username, password: 'first-one' }
  const authenticatorId = await create('authenticators', proof)
  const { certificate } = await certify({ name: username, issuer: signer })
  await create('authenticators', { method: 'cert', identityId, certPem: certificate.toString() })
  return {
    identityId,
    authenticatorId,
    byPassword: (password = 'first-one') =>
      one.identity.authenticate(login({ username, password }), system()),
    byCertificate: () =>
      one.identity.authenticate(login({ method: 'cert', peerCertificates: [certificate.raw] }), system()),
  }
}

interface Opened {
  readonly id: string
  readonly token: string
}
const unauthorized = { code: 'UNAUTHORIZED' }
const lives = async ({ id, token }: Opened, replica = two): Promise<void> => {
  await replica.identity.getApiSession({ bearerTokens: [], token }, system())
  await replica.identity.checkApiSession({ id }, system())
}
const isOver = async ({ id, token }: Opened, replica = two): Promise<void> => {
  await expect(replica.identity.getApiSession({ bearerTokens: [], token }, system())).rejects.toMatchObject(
    unauthorized,
  )
  await expect(replica.identity.checkApiSession({ id }, system())).rejects.toMatchObject(unauthorized)
}
const exists = async ({ id }: Opened): Promise<boolean> =>
  (await one.db.query(sql`select from api_session where id = ${id}`)).rows.length > 0
const reap = (size: number, lifetimeMs = 0) =>
  reapSessions(one.changeLog, { idleMs: 30 * 60_000, lifetimeMs }, size)

test.each(['replaced', 'patched'])(
  'a password that an admin has %s ends the sessions that it opened',
  async (how) => {
    const { authenticatorId, byPassword, byCertificate } = await person()
    const [first, second, certified] = [await byPassword(), await byPassword(), await byCertificate()]
    const other = await (await person()).byPassword()
    const before = await one.changeLog.head()
    const mask = how === 'replaced' ? ['username', 'password', 'tags'] : ['password']
    await update(
      'authenticators',
      authenticatorId,
      { username: `name-${++count}`, password: 'second-one' },
      mask,
    )
    await isOver(first)
    await isOver(second)
    await lives(certified)
    await lives(other)
    const others = await changesAfter(one.changeLog, before)
    expect(others.map(({ kind, json }) => [kind, json.length > 0]).sort()).toEqual([
      ['api-sessions', false],
      ['api-sessions', false],
      ['authenticators', true],
    ])
  },
)

test('the session that changes the own password stays, and no other that the password opened', async () => {
  const { identityId, authenticatorId: id, byPassword } = await person()
  const [own, other] = [await byPassword(), await byPassword()]
  await one.identity.updateOwnAuthenticator(
    {
      ref: { kind: 'authenticators', id },
      json: bytes({ password: 'second-one', currentPassword: 'first-one' }),
      mask: ['password'],
    },
    as({ identityId, apiSessionId: own.id }),
  )
  await lives(own)
  await isOver(other)
})

test('an administrator that changes its own password keeps the session it does so with', async () => {
  const { identityId, authenticatorId, byPassword } = await person({ isAdmin: true })
  const [own, other] = [await byPassword(), await byPassword()]
  const context = as({ identityId, apiSessionId: own.id, isAdmin: true })
  await update('authenticators', authenticatorId, { password: 'second-one' }, ['password'], context)
  await lives(own)
  await isOver(other)
})

test('another user name, or other tags, end no session', async () => {
  const { authenticatorId, byPassword } = await person()
  const session = await byPassword()
  const body = { username: `name-${++count}`, tags: { a: 'b' } }
  await update('authenticators', authenticatorId, body, ['username', 'tags'])
  await lives(session)
})

test('a password that is changed while it is compared opens no session', async () => {
  const { authenticatorId, byPassword } = await person()
  const isWaiting = async (): Promise<boolean> => (await lockWaits(one.db, 'insert into api_session')) > 0
  let entered: Promise<unknown> = Promise.resolve()
  let isSettled = false
  await two.db.transaction(undefined, async (tx) => {
    await tx.query(sql`update authenticator set password = 'another' where id = ${authenticatorId}`)
    entered = byPassword().finally(() => {
      isSettled = true
    })
    entered.catch(() => undefined) // asserted below
    while (!isSettled && !(await isWaiting()));
  })
  await expect(entered).rejects.toMatchObject({ code: 'INVALID_AUTH' })
})

test.each(['updb', 'cert'] as const)(
  'a policy that forbids %s ends at once the sessions opened by it',
  async (method) => {
    const authPolicyId = await makePolicy()
    const people = [await person({ authPolicyId }), await person({ authPolicyId })]
    const passwords = await Promise.all(people.map(({ byPassword }) => byPassword()))
    const certificates = await Promise.all(people.map(({ byCertificate }) => byCertificate()))
    const [forbidden, allowed] = method === 'updb' ? [passwords, certificates] : [certificates, passwords]
    await forbid(authPolicyId, method)
    await Promise.all(forbidden.map((session) => isOver(session)))
    await Promise.all(allowed.map((session) => lives(session)))

    const before = await one.changeLog.head()
    const pages = [await reap(1), await reap(1), await reap(1)]
    expect(pages.map(({ length }) => length)).toEqual([1, 1, 0])
    expect(await Promise.all([...forbidden, ...allowed].map(exists))).toEqual([false, false, true, true])
    const ended = await changesAfter(one.changeLog, before)
    expect(ended.map(({ id }) => id).sort()).toEqual(forbidden.map(({ id }) => id).sort())
    const { rows } = await one.db.query(sql`select from auth_policy where ends_sessions`)
    expect(rows).toEqual([])
  },
)

test('a forbidden session that is locked when others end, ends afterwards', async () => {
  const authPolicyId = await makePolicy()
  const { byPassword } = await person({ authPolicyId })
  const [used, other] = [await byPassword(), await byPassword()]
  await forbid(authPolicyId, 'updb')
  await two.db.transaction(undefined, async (tx) => {
    await tx.query(sql`select from api_session where id = ${used.id} for no key update`)
    expect(await reap(500)).toEqual([other.id])
  })
  expect(await reap(500)).toEqual([used.id])
  expect(await reap(500)).toEqual([])
})

test('an identity that gets another policy loses the sessions that this one forbids', async () => {
  const { identityId, byPassword, byCertificate } = await person()
  const [password, certified] = [await byPassword(), await byCertificate()]
  const authPolicyId = await makePolicy()
  await forbid(authPolicyId, 'updb')
  await update('identities', identityId, { authPolicyId }, ['authPolicyId'])
  expect(await exists(password)).toBe(false)
  await isOver(password)
  await lives(certified)
})

test('a session ends with its lifetime, however much it is used', async () => {
  const lifetimeSeconds = 3600
  const limited = await identity.replica({ lifetimeSeconds })
  const { byPassword } = await person()
  const [old, young] = [await byPassword(), await byPassword()]
  const age = ({ id }: Opened, seconds: number) =>
    one.db.query(sql`
      update api_session set created_at = now() - ${seconds}::float8 * interval '1 second' where id = ${id}`)
  await age(old, lifetimeSeconds + 1)
  await age(young, lifetimeSeconds - 600)
  await one.identity.markActivity(
    { apiSessionIds: [old.id, young.id], atMs: [Date.now(), Date.now()], accessTokenIds: [] },
    system(),
  )
  await isOver(old, limited)
  await lives(young, limited)
  const { endsInMs } = await limited.identity.getApiSession(
    { bearerTokens: [], token: young.token },
    system(),
  )
  expect(endsInMs).toBeGreaterThan(0)
  expect(endsInMs).toBeLessThanOrEqual(600_000)
  expect(await reap(500, lifetimeSeconds * 1000)).toEqual([old.id])
})

test('without a lifetime a session lasts as long as it is used', async () => {
  const session = await (await person()).byPassword()
  await one.db.query(
    sql`update api_session set created_at = now() - interval '10 years' where id = ${session.id}`,
  )
  await lives(session)
  expect(await reap(500)).toEqual([])
  const wire = await one.identity.getApiSession({ bearerTokens: [], token: session.token }, system())
  expect(wire.endsInMs).toBe(0)
  expect(parsed(wire.json)).toMatchObject({ id: session.id })
})
