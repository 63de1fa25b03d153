import { CREDENTIALS } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeAt } from '../src/domain/second-factor.js'
import {
  as,
  bytes,
  lockWaits,
  login,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'
import { policy } from './oidc.js'

let identity: TestIdentity
let one: Replica
let two: Replica
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const invalid = { code: 'MFA_INVALID_TOKEN' }
const notFound = { code: 'NOT_FOUND' }

async function person(name: string) {
  const { id: identityId } = await one.entities.create(
    { kind: 'identities', json: bytes({ name, type: 'Default', isAdmin: false }) },
    system(),
  )
  const proof = { method: 'updb', identityId, username: name, password: 'right-one' }
  await one.entities.create({ kind: 'authenticators', json: bytes(proof) }, system())
  const enter = () => one.identity.authenticate(login({ username: name, password: 'right-one' }), system())
  const session = await enter()
  return { identityId, enter, session, context: as({ identityId, apiSessionId: session.id }) }
}

const step = (): number => Math.floor(Date.now() / 30_000)

/** Somebody with a second factor, and the secret of the app. The code of the step before has been used. */
async function protectedPerson(name: string) {
  const owner = await person(name)
  await one.identity.startMfa({}, owner.context)
  const { provisioningUrl, recoveryCodes } = await one.identity.getMfa({}, owner.context)
  const secret = new URL(provisioningUrl).searchParams.get('secret') ?? ''
  await one.identity.verifyMfa({ code: codeAt(secret, step() - 1) }, owner.context)
  return { ...owner, secret, recoveryCodes }
}

const shown = async (token: string) =>
  parsed((await two.identity.getApiSession({ bearerTokens: [], token }, system())).json)

test('a second factor counts once its first code has been verified', async () => {
  const { context, session, enter, identityId } = await person('starting')
  await expect(one.identity.getMfa({}, context)).rejects.toMatchObject(notFound)
  await one.identity.startMfa({}, context)
  await expect(one.identity.startMfa({}, context)).rejects.toMatchObject({ code: 'MFA_EXISTS' })
  expect(await enter()).toMatchObject({ isPartial: false })

  const { provisioningUrl, recoveryCodes } = await one.identity.getMfa({}, context)
  const secret = new URL(provisioningUrl).searchParams.get('secret') ?? ''
  for (const code of ['abcdef', '', recoveryCodes[0] ?? ''])
    await expect(one.identity.verifyMfa({ code }, context)).rejects.toMatchObject(invalid)
  await one.identity.verifyMfa({ code: codeAt(secret, step()) }, context)

  expect(await shown(session.token)).toMatchObject({ isMfaRequired: true, isMfaComplete: true })
  expect(await one.identity.getMfa({}, context)).toMatchObject({
    isVerified: true,
    provisioningUrl: '',
    recoveryCodes: [],
  })
  expect(await enter()).toMatchObject({ isPartial: true })
  const ref = { kind: 'identities', id: identityId }
  expect(parsed((await two.entities.get({ ref, perspective: undefined }, system())).json)).toMatchObject({
    isMfaEnabled: true,
  })
})

test('a code makes a session complete, and counts once for all replicas', async () => {
  const { identityId, secret, enter } = await protectedPerson('passing')
  const session = await enter()
  const context = as({ identityId, apiSessionId: session.id })
  const code = codeAt(secret, step() + 1)
  const outcomes = await Promise.allSettled(
    [one, two, one, two].map((r) => r.identity.passMfa({ code }, context)),
  )
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(invalid)
  expect(await shown(session.token)).toMatchObject({ isMfaComplete: true, authQueries: [] })
})

test('changes contain when a code was accepted; removing the factor resets it', async () => {
  const { identityId, context, recoveryCodes } = await protectedPerson('telling')
  const [first = '', second = ''] = recoveryCodes
  const reported = async (act: () => Promise<unknown>) => {
    const before = await one.changeLog.head()
    await act()
    const { changes } = await one.changeLog.pull(before)
    return changes.flatMap(({ kind, id, json }) =>
      kind === 'api-sessions' && id === context.caller.apiSessionId ? [parsed(json).mfaPassedAt] : [],
    )
  }
  expect(await reported(() => one.identity.passMfa({ code: first }, context))).toEqual([expect.any(String)])
  expect(await reported(() => one.identity.removeMfa({ code: second }, context))).toEqual([null])

  await one.identity.startMfa({}, context)
  await one.identity.passMfa(
    { code: (await one.identity.getMfa({}, context)).recoveryCodes[0] ?? '' },
    context,
  )
  const admins = () => one.identity.removeMfaOf({ kind: 'identities', id: identityId }, system())
  expect(await reported(admins)).toEqual([null])
})

test('a recovery code counts once, and new ones replace the old', async () => {
  const { context, secret, recoveryCodes } = await protectedPerson('recovering')
  const [first = '', second = ''] = recoveryCodes
  await one.identity.passMfa({ code: first }, context)
  await expect(two.identity.passMfa({ code: first }, context)).rejects.toMatchObject(invalid)
  await expect(one.identity.listRecoveryCodes({ code: second }, context)).rejects.toMatchObject(invalid)
  const { codes } = await one.identity.listRecoveryCodes({ code: codeAt(secret, step()) }, context)
  expect(codes).toEqual(recoveryCodes.slice(1))
  await one.identity.renewRecoveryCodes({ code: codeAt(secret, step() + 1) }, context)
  await expect(one.identity.passMfa({ code: second }, context)).rejects.toMatchObject(invalid)
})

const paused = {
  code: 'SERVER_TOO_MANY_REQUESTS',
  detail: expect.stringContaining('Too many attempts. Wait '),
}
const at = <T extends object>(context: T, sourceAddress: string) => ({ ...context, sourceAddress })
/** Lets time pass for the pauses of the identity. */
const age = (identityId: string, seconds: number) =>
  one.db.query(sql`
    update guess set settled_at = settled_at - ${seconds}::float8 * interval '1 second'
     where kind = 'code' and account = sha256(convert_to(${identityId}, 'UTF8')) and settled_at > '-infinity'`)
/** As if wrong codes had come from so many networks. */
const failEverywhere = (identityId: string, failures: number) =>
  one.db.query(sql`
    insert into guess (kind, account, source, settled_at)
    values ('code', sha256(convert_to(${identityId}, 'UTF8')), '*', now() + ${failures}::float8 * interval '1 hour')
        on conflict (kind, account, source) do update set settled_at = excluded.settled_at`)

test('ten wrong codes pause codes at their address, at every replica and in every operation', async () => {
  const { context, secret, recoveryCodes, identityId } = await protectedPerson('guessing')
  const [attacker, owner] = [at(context, '10.1.0.1'), at(context, '10.1.0.2')]
  const code = '000'
  const wrong = [
    () => one.identity.passMfa({ code }, attacker),
    () => two.identity.listRecoveryCodes({ code }, attacker),
    () => one.identity.renewRecoveryCodes({ code }, attacker),
    () => two.identity.removeMfa({ code }, attacker),
    () => one.identity.passMfa({ code }, attacker),
  ]
  for (const guess of [...wrong, ...wrong]) await expect(guess()).rejects.toMatchObject(invalid)
  for (const guess of wrong) await expect(guess()).rejects.toMatchObject(paused)
  await expect(two.identity.passMfa({ code: recoveryCodes[0] ?? '' }, attacker)).rejects.toMatchObject({
    ...paused,
    retryAfterSeconds: 300,
  })
  await two.identity.passMfa({ code: codeAt(secret, step()) }, owner)
  await age(identityId, 301)
  await two.identity.passMfa({ code: recoveryCodes[0] ?? '' }, attacker)
})

test('wrong codes of an enrollment are paused, too', async () => {
  const { context } = await person('enrolling')
  await one.identity.startMfa({}, context)
  for (let i = 0; i < 10; i++)
    await expect(one.identity.verifyMfa({ code: '000' }, context)).rejects.toMatchObject(invalid)
  await expect(one.identity.verifyMfa({ code: '000' }, context)).rejects.toMatchObject(paused)
})

test('codes that many networks guess are paused, but not where one has been right before', async () => {
  const { context, secret, recoveryCodes, identityId } = await protectedPerson('beleaguered')
  const owner = at(context, '10.1.1.1')
  await one.identity.passMfa({ code: recoveryCodes[0] ?? '' }, owner)
  await failEverywhere(identityId, 29)
  await expect(one.identity.passMfa({ code: '000' }, at(context, '10.1.1.2'))).rejects.toMatchObject(invalid)
  const elsewhere = at(context, '10.1.1.3')
  const right = { code: codeAt(secret, step()) }
  await expect(two.identity.passMfa(right, elsewhere)).rejects.toMatchObject(paused)
  await two.identity.passMfa(right, owner)
  const { rows } = await one.db.query(sql`
    select source_address as from, after->>'scope' as scope from audit
     where kind = 'guess-pauses' and entity_id = ${identityId}`)
  expect(rows).toEqual([{ from: '10.1.1.2', scope: 'account' }])
})

test('of codes that come at once no more are checked than of those that come one by one', async () => {
  const { context } = await protectedPerson('hurried')
  const guesses = Array.from({ length: 30 }, (_, i) =>
    [one, two][i % 2]?.identity.passMfa({ code: String(i) }, context),
  )
  const outcomes = await Promise.allSettled(guesses)
  const codes = outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.code)
  expect(codes.filter((code) => code === invalid.code)).toHaveLength(10)
  expect(codes.filter((code) => code === paused.code)).toHaveLength(20)
})

test.each([
  ['enables the identity', (id: string) => one.identity.enableIdentity({ kind: 'identities', id }, system())],
  [
    'removes the second factor',
    (id: string) => one.identity.removeMfaOf({ kind: 'identities', id }, system()),
  ],
])('the pause of codes ends when an admin %s', async (what, unlock) => {
  const { context, identityId } = await protectedPerson(`unlocked, who ${what}`)
  for (let i = 0; i < 10; i++)
    await expect(one.identity.passMfa({ code: '000' }, context)).rejects.toMatchObject(invalid)
  await failEverywhere(identityId, 30)
  await unlock(identityId)
  await one.identity.startMfa({}, context).catch(() => undefined)
  await expect(two.identity.passMfa({ code: '000' }, context)).rejects.toMatchObject(invalid)
})

test('an empty code is refused, and is no guess', async () => {
  const { context, secret } = await protectedPerson('silent')
  for (let i = 0; i < 11; i++)
    await expect(one.identity.passMfa({ code: '' }, context)).rejects.toMatchObject(invalid)
  await one.identity.passMfa({ code: codeAt(secret, step()) }, context)
})

test('its owner removes it with a code, an admin without; sessions that waited for it are free', async () => {
  const { context, secret, enter, identityId } = await protectedPerson('leaving')
  const waiting = await enter()
  await expect(one.identity.removeMfa({ code: '' }, context)).rejects.toMatchObject(invalid)
  await one.identity.removeMfa({ code: codeAt(secret, step()) }, context)
  expect(await shown(waiting.token)).toMatchObject({ isMfaRequired: false, authQueries: [] })
  await expect(one.identity.removeMfa({ code: '' }, context)).rejects.toMatchObject(notFound)

  await one.identity.startMfa({}, context)
  await one.identity.removeMfaOf({ kind: 'identities', id: identityId }, system())
  await one.identity.removeMfaOf({ kind: 'identities', id: identityId }, system())
  await expect(one.identity.getMfa({}, context)).rejects.toMatchObject(notFound)
  await expect(one.identity.passMfa({ code: '1' }, context)).rejects.toMatchObject({
    code: 'MFA_NOT_ENROLLED',
  })
})

test.each(['owner', 'administrator'])(
  'when the %s removes it, sessions wait for another if the policy demands one, and are told to gateways and routers',
  async (by) => {
    const { context, enter, secret, recoveryCodes, identityId } = await protectedPerson(`bound by ${by}`)
    const authPolicyId = await policy(one, `for ${by}`, { requireTotp: true })
    await one.entities.update(
      { ref: { kind: 'identities', id: identityId }, json: bytes({ authPolicyId }), mask: ['authPolicyId'] },
      system(),
    )
    const session = await enter()
    const own = { ...context, caller: { ...context.caller, apiSessionId: session.id } }
    await one.identity.passMfa({ code: codeAt(secret, step()) }, own)
    expect(await shown(session.token)).toMatchObject({ isMfaComplete: true, authQueries: [] })
    const before = await one.changeLog.head()
    if (by === 'owner') await one.identity.removeMfa({ code: recoveryCodes[0] ?? '' }, own)
    else await one.identity.removeMfaOf({ kind: 'identities', id: identityId }, system())
    expect(await shown(session.token)).toMatchObject({
      isMfaComplete: false,
      authQueries: [{ typeId: 'MFA' }],
    })
    const toldOf = async (kind: string) =>
      (await one.changeLog.pull(before)).changes.some(
        (change) => change.kind === kind && change.id === session.id,
      )
    expect(await toldOf('api-sessions')).toBe(true)
    await expect.poll(() => toldOf(CREDENTIALS)).toBe(true)
    await one.identity.startMfa({}, own)
    const { provisioningUrl } = await one.identity.getMfa({}, own)
    const next = new URL(provisioningUrl).searchParams.get('secret') ?? ''
    await one.identity.verifyMfa({ code: codeAt(next, step()) }, own)
    expect(await shown(session.token)).toMatchObject({ authQueries: [] })
  },
)

test('where no policy demands one, sessions stay complete without it', async () => {
  const { session, context, recoveryCodes } = await protectedPerson('volunteer')
  await one.identity.removeMfa({ code: recoveryCodes[0] ?? '' }, context)
  expect(await shown(session.token)).toMatchObject({ isMfaRequired: false, authQueries: [] })
})

test.each([
  ['removal', 'verification'],
  ['verification', 'removal'],
] as const)('of a %s and a %s at once, the first one succeeds', async (...order) => {
  const { context } = await person(`hesitating before ${order[0]}`)
  await one.identity.startMfa({}, context)
  const { provisioningUrl } = await one.identity.getMfa({}, context)
  const secret = new URL(provisioningUrl).searchParams.get('secret') ?? ''
  const act = {
    removal: () => one.identity.removeMfa({ code: '' }, context),
    verification: () => two.identity.verifyMfa({ code: codeAt(secret, step()) }, context),
  }
  const { settled } = await one.db.transaction(undefined, async (tx) => {
    await tx.query(sql`lock table second_factor in share mode`) // factors can be locked, but not changed
    const first = act[order[0]]()
    await expect.poll(() => lockWaits(one.db)).toBe(1)
    const second = act[order[1]]()
    await expect.poll(() => lockWaits(one.db)).toBe(2)
    return { settled: Promise.allSettled([first, second]) }
  })
  const refusal = order[1] === 'removal' ? invalid : notFound
  expect(await settled).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: refusal }])
})

test('an answer about a second factor waits for policy, and after a removal for sessions that lose access', async () => {
  const { context, identityId, enter, secret, recoveryCodes } = await protectedPerson('waiting')
  identity.world.waits.length = 0
  const next = { ...context, caller: { ...context.caller, apiSessionId: (await enter()).id } }
  await one.identity.passMfa({ code: codeAt(secret, step()) }, next)
  await one.identity.removeMfa({ code: recoveryCodes[0] ?? '' }, next)
  await one.identity.startMfa({}, next)
  await one.identity.removeMfaOf({ kind: 'identities', id: identityId }, system())
  const removed = [['policy', 'sessions']]
  expect(identity.world.waits).toEqual([[['policy']], removed, removed])
})

test('neither secret nor codes are in the database in plain text, nor in changes or the audit', async () => {
  const { secret, recoveryCodes } = await protectedPerson('hiding')
  const { rows } = await one.db.query<{ all: string }>(sql`
    select concat((select json_agg(f) from second_factor f), (select json_agg(c) from change c),
                  (select json_agg(a) from audit a)) as all`)
  for (const hidden of [secret, ...recoveryCodes]) expect(rows[0]?.all).not.toContain(hidden)
  expect(rows[0]?.all).toContain('second-factors')
})
