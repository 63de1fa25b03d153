import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const refused = { code: 'INVALID_AUTH' }

async function person(name: string, policy = {}): Promise<{ id: string; username: string }> {
  const { id: authPolicyId } = await one.entities.create(
    { kind: 'auth-policies', json: bytes(policyOf(`policy of ${name}`, policy)) },
    system(),
  )
  const { id } = await one.entities.create(
    { kind: 'identities', json: bytes({ name, type: 'Default', isAdmin: false, authPolicyId }) },
    system(),
  )
  const proof = { method: 'updb', identityId: id, username: name, password: 'right-one' }
  await one.entities.create({ kind: 'authenticators', json: bytes(proof) }, system())
  return { id, username: name }
}

const policyOf = (name: string, updb: object) => ({
  name,
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

const shown = async (id: string): Promise<Record<string, unknown>> =>
  parsed((await one.entities.get({ ref: { kind: 'identities', id }, perspective: undefined }, system())).json)

const enter = (replica: Replica, username: string, password: string) =>
  replica.identity.authenticate(login({ username, password }), system())

test('the default admin logs in, and every replica knows the session', async () => {
  const session = await enter(one, identity.admin.username, identity.admin.password)
  expect(session).toMatchObject({ isAdmin: true, isPartial: false, timeoutSeconds: 1800 })
  const wire = parsed(session.json)
  expect(wire).toMatchObject({
    authQueries: [],
    configTypes: [],
    isMfaRequired: false,
    ipAddress: '127.0.0.1',
  })
  expect(wire._links).toEqual({
    self: { href: `./api-sessions/${session.id}` },
    sessions: { href: `./api-sessions/${session.id}/sessions` },
  })
  const again = await two.identity.getApiSession({ bearerTokens: [], token: session.token }, system())
  // the change of its credentials may have been appended meanwhile
  expect(again.position?.number).toBeGreaterThanOrEqual(session.position?.number ?? Number.POSITIVE_INFINITY)
  expect(again).toEqual({ ...session, position: again.position })
})

test.each([
  ['a wrong password', 'admin', 'not-the-one'],
  ['an unknown name', 'nobody', 'not-the-one'],
])('%s is refused without a reason', async (_what, username, password) => {
  await expect(enter(one, username, password)).rejects.toMatchObject({ ...refused, detail: undefined })
})

test.each([
  ['without a name', '', 'secret'],
  ['without a password', 'admin', ''],
])('%s the request is wrong', async (_what, username, password) => {
  await expect(enter(one, username, password)).rejects.toMatchObject({ code: 'COULD_NOT_VALIDATE' })
})

test('tokens of external signers are refused', async () => {
  await expect(one.identity.authenticate(login({ method: 'ext-jwt' }), system())).rejects.toMatchObject(
    refused,
  )
})

test('an invalid token, or one of an ended session, is refused', async () => {
  const unauthorized = { code: 'UNAUTHORIZED' }
  await expect(one.identity.getApiSession({ bearerTokens: [], token: 'x' }, system())).rejects.toMatchObject(
    unauthorized,
  )
  const session = await enter(one, identity.admin.username, identity.admin.password)
  await one.entities.delete({ kind: 'api-sessions', id: session.id }, system())
  await expect(
    two.identity.getApiSession({ bearerTokens: [], token: session.token }, system()),
  ).rejects.toMatchObject(unauthorized)
  await expect(two.identity.checkApiSession({ id: session.id }, system())).rejects.toMatchObject(unauthorized)
})

test('failures of all replicas count together, and lock at the limit', async () => {
  const { id, username } = await person('locked', { maxAttempts: 2, lockoutDurationMinutes: 10 })
  const session = await enter(one, username, 'right-one')
  await expect(enter(one, username, 'wrong-one')).rejects.toMatchObject(refused)
  await expect(enter(two, username, 'wrong-one')).rejects.toMatchObject(refused)
  await expect(enter(one, username, 'right-one')).rejects.toMatchObject(refused)
  expect(await shown(id)).toMatchObject({ disabled: true, hasApiSession: false })
  await expect(
    one.identity.getApiSession({ bearerTokens: [], token: session.token }, system()),
  ).rejects.toMatchObject({
    code: 'UNAUTHORIZED',
  })

  await one.identity.enableIdentity({ kind: 'identities', id }, system())
  await enter(two, username, 'right-one')
  expect(await shown(id)).toMatchObject({ disabled: false })
})

test('a right password forgets the wrong ones', async () => {
  const { username } = await person('forgetful', { maxAttempts: 2 })
  for (const password of ['wrong-one', 'right-one', 'wrong-one', 'right-one'])
    await enter(one, username, password).catch((err: unknown) => expect(err).toMatchObject(refused))
  await enter(one, username, 'right-one')
})

test('a wrong current password counts like one at a login', async () => {
  const { id: identityId, username } = await person('guessing', { maxAttempts: 2 })
  const { authenticatorId } = parsed<{ authenticatorId: string }>(
    (await enter(one, username, 'right-one')).json,
  )
  const guess = one.identity.updateOwnAuthenticator
  for (const currentPassword of ['wrong-one', 'other-one'])
    await expect(
      guess(
        {
          ref: { kind: 'authenticators', id: authenticatorId },
          json: bytes({ currentPassword, password: 'mine-now' }),
          mask: ['currentPassword', 'password'],
        },
        as({ identityId }),
      ),
    ).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  expect(await shown(identityId)).toMatchObject({ disabled: true, hasApiSession: false })
})

test('no policy lets failures lock the default admin', async () => {
  const set = (maxAttempts: number) =>
    one.entities.update(
      {
        ref: { kind: 'auth-policies', id: 'default' },
        json: bytes({ primary: { updb: { maxAttempts } } }),
        mask: ['primary.updb.maxAttempts'],
      },
      system(),
    )
  await set(1)
  const { token } = await enter(one, identity.admin.username, identity.admin.password)
  await expect(enter(one, identity.admin.username, 'wrong-one')).rejects.toMatchObject(refused)
  await one.identity.getApiSession({ bearerTokens: [], token }, system())
  await enter(one, identity.admin.username, identity.admin.password)
  await set(0)
})

test('a policy that does not allow passwords refuses the right one', async () => {
  const { username } = await person('without password', { allowed: false })
  await expect(enter(one, username, 'right-one')).rejects.toMatchObject(refused)
})

test.each([7_464_960_000, Number.MAX_SAFE_INTEGER])(
  'an identity that is disabled for %d minutes shows a date-time',
  async (durationMinutes) => {
    const { id } = await person(`disabled for ${durationMinutes}`)
    await one.identity.disableIdentity({ id, durationMinutes }, system())
    expect(await shown(id)).toMatchObject({
      disabled: true,
      disabledUntil: expect.stringMatching(/^99\d\d-\d\d-\d\dT/),
    })
  },
)

test('a disabled identity cannot log in, and its sessions end, until it is enabled', async () => {
  const { id, username } = await person('disabled')
  const { token } = await enter(one, username, 'right-one')
  const before = await one.changeLog.head()
  await one.identity.disableIdentity({ id, durationMinutes: 0 }, system())
  await expect(two.identity.getApiSession({ bearerTokens: [], token }, system())).rejects.toMatchObject({
    code: 'UNAUTHORIZED',
  })
  await expect(enter(two, username, 'right-one')).rejects.toMatchObject(refused)
  const changes = await changesAfter(one.changeLog, before)
  expect(changes.map(({ kind, json }) => [kind, json.length > 0])).toEqual([
    ['api-sessions', false],
    ['identities', true],
  ])
  await one.identity.enableIdentity({ kind: 'identities', id }, system())
  await enter(two, username, 'right-one')
})

test('an identity that is disabled while its password is compared gets no session', async () => {
  const { id, username } = await person('overtaken')
  const isWaiting = async (): Promise<boolean> => (await lockWaits(one.db, 'insert into api_session')) > 0
  let entered: Promise<unknown> = Promise.resolve()
  let isOver = false
  await two.db.transaction(undefined, async (tx) => {
    await tx.query(sql`update identity set disabled_at = now() where id = ${id}`)
    entered = enter(one, username, 'right-one').finally(() => {
      isOver = true
    })
    entered.catch(() => undefined) // asserted below
    while (!isOver && !(await isWaiting()));
  })
  await expect(entered).rejects.toMatchObject(refused)
})

test('a policy that asks for a second factor makes sessions partial, those that are open too', async () => {
  const { id, username } = await person('two factors')
  const { token, isPartial, id: sessionId } = await enter(one, username, 'right-one')
  expect(isPartial).toBe(false)
  const { authPolicyId } = (await shown(id)) as { authPolicyId: string }
  await one.entities.update(
    {
      ref: { kind: 'auth-policies', id: authPolicyId },
      json: bytes({ secondary: { requireTotp: true } }),
      mask: ['secondary.requireTotp'],
    },
    system(),
  )
  const now = await two.identity.getApiSession({ bearerTokens: [], token }, system())
  expect(now.isPartial).toBe(true)
  expect(parsed(now.json).authQueries).toMatchObject([{ typeId: 'MFA', provider: 'ziti' }])
  await expect(two.identity.checkApiSession({ id: sessionId }, system())).rejects.toMatchObject({
    code: 'UNAUTHORIZED',
  })
  expect((await enter(one, username, 'right-one')).isPartial).toBe(true)
})

test('what a client reports of itself is stored with the identity, and absent parts stay', async () => {
  const { id, username } = await person('talkative')
  const report = (envInfo: object | undefined, sdkInfo: object | undefined) =>
    one.identity.authenticate(
      login({
        username,
        password: 'right-one',
        ...(envInfo && { envInfo: bytes(envInfo) }),
        ...(sdkInfo && { sdkInfo: bytes(sdkInfo) }),
      }),
      system(),
    )
  await report({ os: 'linux' }, { type: 'go' })
  await report(undefined, { type: 'c' })
  expect(await shown(id)).toMatchObject({ envInfo: { os: 'linux' }, sdkInfo: { type: 'c' } })
  const changes = async () =>
    (await one.db.query(sql`select from change where kind = 'identities' and entity_id = ${id}`)).rowCount
  const before = await changes()
  await report({ os: 'linux' }, { type: 'c' })
  expect(await changes()).toBe(before)
})
