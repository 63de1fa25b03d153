import { seal, unseal } from '@overlay/platform/postgres'
import pino from 'pino'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeAt } from '../src/domain/second-factor.js'
import { resealSecondFactors } from '../src/init.js'
import {
  as,
  bytes,
  keySecret,
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

const shown = async (token: string) => parsed((await two.identity.getApiSession({ token }, system())).json)

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

test('after five wrong codes a right one is refused for a while too', async () => {
  const { context, secret } = await protectedPerson('guessing')
  for (const replica of [one, two, one, two, one])
    await expect(replica.identity.passMfa({ code: '000' }, context)).rejects.toMatchObject(invalid)
  await expect(two.identity.passMfa({ code: codeAt(secret, step()) }, context)).rejects.toMatchObject(invalid)
  await one.db.query(sql`update second_factor set failed_at = now() - interval '61 seconds'`)
  await two.identity.passMfa({ code: codeAt(secret, step()) }, context)
})

test('an empty code is refused, and is no guess', async () => {
  const { context, secret } = await protectedPerson('silent')
  for (let i = 0; i < 6; i++)
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

test('factors under the secret that pki had too are encrypted again under that of identity, once', async () => {
  const { identityId, secret, context } = await protectedPerson('resealed')
  const shared = 'the secret that two services shared'
  const sealedNow = async () =>
    (
      await one.db.query<{ sealed: string }>(
        sql`select sealed from second_factor where identity_id = ${identityId}`,
      )
    ).rows[0]?.sealed ?? ''
  const plain = unseal(keySecret, identityId, await sealedNow())
  const before = seal(shared, identityId, plain).replace(/^v2/, 'v1')
  await one.db.query(sql`update second_factor set sealed = ${before} where identity_id = ${identityId}`)

  const reseal = () =>
    resealSecondFactors({
      databaseUrl: identity.url,
      from: shared,
      to: keySecret,
      log: pino({ enabled: false }),
    })
  await reseal()
  const after = await sealedNow()
  expect(() => unseal(shared, identityId, after)).toThrow('key secret')
  await one.identity.removeMfa({ code: codeAt(secret, step()) }, context)
  await reseal()
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
  expect(identity.world.waits).toEqual([['policy'], removed, removed])
})

test('neither secret nor codes are in the database in plain text, nor in changes or the audit', async () => {
  const { secret, recoveryCodes } = await protectedPerson('hiding')
  const { rows } = await one.db.query<{ all: string }>(sql`
    select concat((select json_agg(f) from second_factor f), (select json_agg(c) from change c),
                  (select json_agg(a) from audit a)) as all`)
  for (const hidden of [secret, ...recoveryCodes]) expect(rows[0]?.all).not.toContain(hidden)
  expect(rows[0]?.all).toContain('second-factors')
})
