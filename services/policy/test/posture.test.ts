import { withLoadedRows } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import { Access, type Context, type Positions } from '@overlay/rpc'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { identityConsumer } from '../src/consumers/identity.js'
import { reportLapses } from '../src/engine/lapses.js'
import { admin, as, type Network, openNetwork, type Replica } from './network.js'

let network: Network
let policy: Replica
let other: Replica
beforeAll(async () => {
  network = await openNetwork()
  policy = await network.replica()
  other = await network.replica()
})
afterAll(() => network[Symbol.asyncDispose]())

let made = 0
const newName = () => `n${++made}`
const whole = (replica = policy) => replica.engine.catchUp(AbortSignal.timeout(5000))
const bytes = (value: object) => Buffer.from(JSON.stringify(value))
const parsed = (json: Uint8Array): unknown => JSON.parse(Buffer.from(json).toString())

const check = (body: object) =>
  policy.create('posture-checks', { name: newName(), typeId: 'DOMAIN', domains: ['a.example'], ...body })
const caller = (identityId: string, apiSessionId = 's1'): Context => as({ identityId, apiSessionId })
const say = (identityId: string, ...responses: object[]) =>
  policy.policy.submitPosture({ responses: responses.map(bytes) }, caller(identityId))
const domain = (name: string) => ({ id: 'any', typeId: 'DOMAIN', domain: name })

/** Somebody who may dial a service if a check lets it. */
async function guarded(checkId: string, more: object = {}) {
  const alice = newName()
  await network.identity.put(alice, { isAdmin: false })
  await network.sessions.put(`r-${alice}`, {})
  const service = await policy.create('services', { name: newName(), encryptionRequired: true })
  const base = { semantic: 'AnyOf', identityRoles: [`@${alice}`], serviceRoles: [`@${service}`] }
  const edgeRouterRoles = [`@r-${alice}`]
  await policy.create('edge-router-policies', { ...base, name: newName(), edgeRouterRoles })
  await policy.create('service-edge-router-policies', { ...base, name: newName(), edgeRouterRoles })
  const dial = { ...base, type: 'Dial', postureCheckRoles: [`@${checkId}`], ...more }
  const policyId = await policy.create('service-policies', { ...dial, name: newName() })
  await whole()
  return { alice, service, policyId }
}

const authorize = (
  { alice, service }: { alice: string; service: string },
  positions: Positions = {},
  replica = policy,
) => {
  const request = { identityId: alice, serviceId: service, access: Access.ACCESS_DIAL, isAdmin: false }
  return replica.policy.authorize({ ...request, apiSessionId: 's1' }, { ...admin, positions })
}

test('a service is refused until what was said passes, and the refusal says which checks fail', async () => {
  const checkId = await check({})
  const who = await guarded(checkId)
  const refused = {
    code: 'INVALID_POSTURE',
    detail: `Failed to pass posture checks for service policies: [${who.policyId}]`,
    data: { [who.policyId]: [{ id: checkId, isPassing: false, typeId: 'DOMAIN' }] },
  }
  await expect(authorize(who)).rejects.toMatchObject(refused)
  await say(who.alice, domain('b.example'))
  await expect(authorize(who)).rejects.toMatchObject(refused)
  const { position } = await say(who.alice, domain('A.example'))
  if (!position) throw new Error('nothing was told')
  const allowed = await authorize(who, { policy: position })
  expect(allowed).toMatchObject({ policyIds: [who.policyId], routerIds: [`r-${who.alice}`] })
  expect(await authorize(who, { policy: position }, other)).toMatchObject({ policyIds: [who.policyId] })
})

test('one policy that lets through is enough, and it alone is named', async () => {
  const who = await guarded(await check({}))
  const roles = { identityRoles: [`@${who.alice}`], serviceRoles: [`@${who.service}`] }
  const open = await policy.create('service-policies', {
    name: newName(),
    type: 'Dial',
    semantic: 'AllOf',
    ...roles,
  })
  await whole()
  expect((await authorize(who)).policyIds).toEqual([open])
})

test('refused requests are told to the admin, oldest first, and no more than a hundred', async () => {
  const checkId = await check({ typeId: 'MAC', macAddresses: ['AA:BB'] })
  const who = await guarded(checkId)
  for (let n = 0; n < 102; n++) await authorize(who).catch(() => undefined)
  const { json } = await policy.policy.listFailedRequests({ identityId: who.alice }, admin)
  const failed = parsed(json) as { when: string }[]
  expect(failed.length).toBe(100)
  expect(failed.map(({ when }) => when)).toEqual(failed.map(({ when }) => when).sort())
  expect(failed[0]).toMatchObject({
    apiSessionId: 's1',
    serviceId: who.service,
    sessionType: 'Dial',
    policyFailures: [
      {
        policyId: who.policyId,
        checks: [
          { postureCheckId: checkId, postureCheckType: 'MAC', actualValue: [], expectedValue: ['aabb'] },
        ],
      },
    ],
  })
})

test('a held access is lost when posture fails, also where an admin has it', async () => {
  const who = await guarded(await check({}))
  const root = newName()
  await network.identity.put(root, { isAdmin: true })
  const held = [
    { identityId: who.alice, serviceId: who.service, access: Access.ACCESS_DIAL, apiSessionId: 's1' },
    { identityId: root, serviceId: who.service, access: Access.ACCESS_DIAL, apiSessionId: 's1' },
  ]
  const lost = async () => {
    await whole()
    return (await policy.policy.findLost({ held }, admin)).lost
  }
  await say(who.alice, domain('a.example'))
  expect(await lost()).toEqual([false, false])
  await say(who.alice, domain('b.example'))
  expect(await lost()).toEqual([true, false])
})

test('the policies that require a posture check are found', async () => {
  const [checkId, another] = [await check({}), await check({})]
  const [{ policyId }, { policyId: elsewhere }] = [await guarded(checkId), await guarded(another)]
  await whole()
  const { policyIds } = await policy.policy.findRequiring({ postureCheckIds: [checkId, 'unknown'] }, admin)
  expect(policyIds).toContain(policyId)
  expect(policyIds).not.toContain(elsewhere)
})

const code = (checkMore: object = {}) => check({ typeId: 'MFA', domains: undefined, ...checkMore })
/** As identity tells it. */
async function pass(identityId: string, mfaPassedAt: string | null, apiSessionId = 's1') {
  const told = { identityId, isMfaComplete: true, mfaPassedAt }
  const position = await network.identity.tell('api-sessions', apiSessionId, told)
  await policy.changes.reach({ schema: 'identity', position }, as({}))
}
const now = () => new Date().toISOString()

test('a code lets its API session through at once, in every replica, until it counts no more', async () => {
  const who = await guarded(await code())
  await whole(other) // of the service itself it hears a little later
  const { alice: identityId, service: serviceId } = who
  await expect(authorize(who)).rejects.toMatchObject({ code: 'INVALID_POSTURE' })
  await pass(identityId, now(), 's2')
  await expect(authorize(who)).rejects.toMatchObject({ code: 'INVALID_POSTURE' })
  await pass(identityId, now())
  for (const replica of [other, policy])
    expect(await authorize(who, {}, replica)).toMatchObject({ policyIds: [who.policyId] })

  await pass(identityId, null)
  await whole()
  const lost = ['s1', 's2'].map((apiSessionId) => ({
    identityId,
    serviceId,
    access: Access.ACCESS_DIAL,
    apiSessionId,
  }))
  expect((await policy.policy.findLost({ held: lost }, admin)).lost).toEqual([true, false])
})

test('after a load only those codes count that its rows tell of', async () => {
  const who = await guarded(await code())
  await pass(who.alice, now())
  const row = (id: string, mfaPassedAt: string | null) => ({
    kind: 'api-sessions',
    id,
    json: bytes({ identityId: who.alice, mfaPassedAt }),
    atMs: 0,
    number: 0,
  })
  const passed = async (...rows: ReturnType<typeof row>[]) => {
    const upto = { timeline: '', number: 0 }
    const names: Names = async (_, ids) => new Map(ids.map((id) => [id, id]))
    const { reload } = identityConsumer(network.identity.source, names).effects
    await policy.changeLog.db.transaction(undefined, (tx) =>
      withLoadedRows(tx, [rows], (loaded) => reload(tx, loaded, upto)),
    )
    const shown = parsed((await policy.policy.getPostureData({ identityId: who.alice }, admin)).json)
    const { apiSessionPostureData } = shown as {
      apiSessionPostureData: Record<string, { mfa: { passedMfa: boolean } }>
    }
    return Object.entries(apiSessionPostureData).flatMap(([id, { mfa }]) => (mfa.passedMfa ? [id] : []))
  }
  expect(await passed(row('s1', now()), row('s2', now()), row('s3', null))).toEqual(['s1', 's2'])
  expect(await passed(row('s1', null))).toEqual([])
})

test('that a code counts no more is told once, by whichever replica looks first, and again for the next code', async () => {
  const who = await guarded(await code({ timeoutSeconds: 60 }))
  const told = async (look: () => Promise<unknown>) => {
    await Promise.all([whole(), whole(other)])
    const before = await policy.changeLog.head()
    await look()
    const { changes } = await policy.changeLog.pull(before)
    return changes.filter(({ kind, id }) => kind === 'posture-data' && id === who.alice).length
  }
  const all = () =>
    Promise.all(
      [policy, other, policy].map((replica) =>
        reportLapses(replica.changeLog, replica.engine, 0, Date.now()),
      ),
    )
  await pass(who.alice, new Date(Date.now() - 120_000).toISOString())
  expect([await told(all), await told(all)]).toEqual([1, 0])
  await pass(who.alice, new Date(Date.now() - 61_000).toISOString())
  expect([await told(all), await told(all)]).toEqual([1, 0])
  await pass(who.alice, now())
  expect(await told(all)).toBe(0)
})

test('who wakes hears which services will ask for another code', async () => {
  const who = await guarded(await code({ promptOnWake: true, timeoutSeconds: 600 }))
  await guarded(await code({ promptOnWake: true })) // somebody else's
  const wake = async (state: object) => {
    const { services } = await say(who.alice, { id: 'x', typeId: 'ENDPOINT_STATE', ...state })
    return parsed(services)
  }
  expect(await wake({ woken: true })).toEqual([])
  await pass(who.alice, now())
  expect(await wake({ unlocked: true })).toEqual([])
  expect(await wake({ woken: true })).toEqual([
    {
      id: who.service,
      name: expect.any(String),
      postureQueryType: 'MFA',
      timeout: 600,
      timeoutRemaining: 300,
    },
  ])
  await pass(who.alice, new Date(Date.now() - 400_000).toISOString())
  expect(await wake({ woken: true })).toEqual([]) // the code itself ends before
})

test('a service says what it asks of its reader, and whether that is fulfilled', async () => {
  const path = { osType: 'Linux', path: '/a', hashes: ['ab'] }
  const checkId = await check({ typeId: 'PROCESS', process: path, tags: { a: 'b' } })
  const who = await guarded(checkId)
  const shown = async () => {
    await whole()
    const [service] = await policy.list('services', { context: caller(who.alice) })
    return service?.postureQueries
  }
  const query = {
    _links: { self: { href: `./posture-checks/${checkId}` } },
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    id: checkId,
    isPassing: false,
    process: { osType: 'Linux', path: '/a' },
    processes: null,
    queryType: 'PROCESS',
    tags: { a: 'b' },
    timeout: -1,
    timeoutRemaining: -1,
  }
  const asked = { policyId: who.policyId, policyType: 'Dial', isPassing: false, postureQueries: [query] }
  expect(await shown()).toEqual([asked])
  await say(who.alice, { id: checkId, typeId: 'PROCESS', path: '/a', isRunning: true, hash: 'A:B' })
  expect(await shown()).toEqual([
    { ...asked, isPassing: true, postureQueries: [{ ...query, isPassing: true }] },
  ])
})

test('what was said changes the key of the list and moves its time; also for the other replica', async () => {
  const who = await guarded(await check({}))
  const header = async (replica: Replica) => {
    await whole(replica)
    return replica.policy.getHeader({ identityId: who.alice }, admin)
  }
  const before = await header(other)
  expect((await header(policy)).contentKey).toBe(before.contentKey)
  await say(who.alice, domain('a.example'))
  const after = await header(other)
  expect(after.contentKey).not.toBe(before.contentKey)
  expect(after.lastChangeAtMs).toBeGreaterThan(before.lastChangeAtMs)
  await say(who.alice, domain('a.example'))
  const again = await header(other)
  expect(again.contentKey).toBe(after.contentKey)
  expect(again.lastChangeAtMs).toBeGreaterThan(after.lastChangeAtMs)
})

test('what was said outlives a restart, and ends with the identity', async () => {
  const who = await guarded(await check({}))
  await say(who.alice, domain('a.example'), { id: 'x', typeId: 'ENDPOINT_STATE', woken: true })
  const data = async () => parsed((await policy.policy.getPostureData({ identityId: who.alice }, admin)).json)
  expect(await data()).toMatchObject({
    domain: { domain: 'a.example', postureCheckId: 'any', timedOut: false },
    mac: { addresses: null, lastUpdatedAt: null, postureCheckId: '' },
    apiSessionPostureData: { s1: { endpointState: { unlockedAt: null, wokenAt: expect.any(String) } } },
  })
  await using again = await network.replica()
  await whole(again)
  expect(await authorize(who, {}, again)).toMatchObject({ policyIds: [who.policyId] })

  const position = await network.identity.remove(who.alice)
  await policy.changes.reach({ schema: 'identity', position }, as({}))
  expect(await data()).toMatchObject({ domain: { domain: null }, apiSessionPostureData: {} })
})

const dataOf = async (identityId: string) =>
  parsed((await policy.policy.getPostureData({ identityId }, admin)).json) as {
    readonly domain: { readonly domain: string | null }
    readonly processes: readonly { readonly postureCheckId: string }[]
    readonly apiSessionPostureData: Readonly<Record<string, unknown>>
  }
const processCheck = () => check({ typeId: 'PROCESS', process: { osType: 'Linux', path: '/a' } })
const runs = (id: string, path: string) => ({ id, typeId: 'PROCESS', path, isRunning: true })

test('what all endpoints of an identity say has a budget; more is refused and changes nothing', async () => {
  const [checkId, who] = [await processCheck(), newName()]
  await say(who, domain('a.example'), runs(checkId, '/a'))
  const before = await dataOf(who)
  const head = await policy.changeLog.head()
  const many = Array.from({ length: 30 }, (_, n) => runs(checkId, `\u0001`.repeat(400) + n))
  await expect(say(who, domain('b.example'), ...many)).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'postureResponse' },
  })
  expect([await dataOf(who), await policy.changeLog.head()]).toEqual([before, head])
  for (const one of many.slice(0, 20)) await say(who, one)
  expect((await dataOf(who)).processes).toHaveLength(21)
  await expect(Promise.all(many.map((one) => say(who, one)))).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
  })
})

test('answers to checks that do not exist are not stored, and go with their check', async () => {
  const [first, second, who] = [await processCheck(), await processCheck(), newName()]
  await say(who, runs(first, '/a'), runs(second, '/b'), runs('nothing', '/c'))
  const ids = async () => (await dataOf(who)).processes.map(({ postureCheckId }) => postureCheckId)
  expect(await ids()).toEqual([first, second])
  await policy.remove('posture-checks', first)
  await say(who, domain('a.example'))
  expect(await ids()).toEqual([second])
})

test('states of API sessions that have ended make room', async () => {
  const who = newName()
  const wake = (apiSessionId: string) =>
    policy.policy.submitPosture(
      { responses: [bytes({ id: 'x', typeId: 'ENDPOINT_STATE', woken: true })] },
      caller(who, apiSessionId),
    )
  for (let n = 0; n < 60; n++) {
    await wake(`${who}-${n}`)
    await whole()
  }
  expect(Object.keys((await dataOf(who)).apiSessionPostureData).length).toBeLessThan(60)
  expect((await dataOf(who)).apiSessionPostureData).toHaveProperty(`${who}-59`)
})

test('refused requests are listed as far as they fit a message', async () => {
  const processes = Array.from({ length: 50 }, (_, n) => ({
    osType: 'Linux',
    path: `/${n}`.padEnd(4000, 'p'),
  }))
  const large = () => check({ typeId: 'PROCESS_MULTI', semantic: 'AllOf', processes })
  const checks = [await large(), await large(), await large()]
  const who = await guarded('', { postureCheckRoles: checks.map((id) => `@${id}`) })
  for (let n = 0; n < 16; n++) await authorize(who).catch(() => undefined)
  const { json } = await policy.policy.listFailedRequests({ identityId: who.alice }, admin)
  expect((parsed(json) as object[]).length).toBe(13)
})

test('members follow the type of a check, which never changes', async () => {
  const id = await check({ roleAttributes: ['#b', 'a'] })
  const shown = { typeId: 'DOMAIN', domains: ['a.example'], version: 1, roleAttributes: ['#b', 'a'] }
  const before = await policy.get('posture-checks', id)
  expect(before).toMatchObject(shown)
  expect(Object.keys(before)).not.toEqual(expect.arrayContaining(['macAddresses']))
  await policy.update('posture-checks', id, { typeId: 'MAC', macAddresses: ['aa'], name: newName() })
  const after = await policy.get('posture-checks', id)
  expect(after).toEqual({ ...before, name: after.name, updatedAt: after.updatedAt })
  expect(after.name).not.toBe(before.name)
})

test('what is stored has the form in which it is compared and shown', async () => {
  const shown = async (body: object) => policy.get('posture-checks', await check(body))
  const systems = [
    { type: 'Windows', versions: ['1.0.0'] },
    { type: 'Linux', versions: ['>=5.0.0 <6.0.0'] },
    { type: 'Windows', versions: [] },
  ]
  expect(await shown({ typeId: 'OS', operatingSystems: systems })).toMatchObject({
    operatingSystems: [
      { type: 'Linux', versions: ['>=5.0.0 <6.0.0'] },
      { type: 'Windows', versions: null },
    ],
  })
  expect(await shown({ typeId: 'MAC', macAddresses: ['AA-bb:CC'] })).toMatchObject({
    macAddresses: ['aabbcc'],
    roleAttributes: [],
  })
  const process = { osType: 'Linux', path: '/a' }
  expect((await shown({ typeId: 'PROCESS', process })).process).toEqual({ ...process, hashes: null })
  const processes = [
    { ...process, path: '/b', hashes: ['AB'] },
    process,
    { ...process, path: '/b', signerFingerprints: ['CD'] },
  ]
  expect(await shown({ typeId: 'PROCESS_MULTI', semantic: 'AnyOf', processes })).toMatchObject({
    semantic: 'AnyOf',
    processes: [
      { ...process, hashes: [], signerFingerprints: [] },
      { ...process, path: '/b', hashes: [], signerFingerprints: ['cd'] },
    ],
  })
  const mfa = await shown({ typeId: 'MFA', timeoutSeconds: 0, promptOnWake: true })
  expect(mfa).toMatchObject({ timeoutSeconds: -1, promptOnWake: true })
  expect(mfa).not.toHaveProperty('promptOnUnlock')
})

test('a patch changes one member and keeps its siblings', async () => {
  const id = await check({
    typeId: 'PROCESS',
    process: { osType: 'Linux', path: '/a', hashes: ['ab'], signerFingerprint: 'cd' },
  })
  const json = bytes({ typeId: 'PROCESS', process: { path: '/b' } })
  const ref = { kind: 'posture-checks', id }
  await policy.entities.update({ ref, json, mask: ['typeId', 'process.path'] }, admin)
  expect((await policy.get('posture-checks', id)).process).toEqual({
    osType: 'Linux',
    path: '/b',
    hashes: ['ab'],
    signerFingerprint: 'cd',
  })
})

test('a range that is none is bad input', async () => {
  const operatingSystems = [{ type: 'Linux', versions: ['1.0.0', 'new'] }]
  await expect(check({ typeId: 'OS', operatingSystems })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'operatingSystems.0.versions.1', value: 'new' },
  })
})

test('a check that goes is named by no policy any more, and asks nothing', async () => {
  const checkId = await check({})
  const who = await guarded(checkId)
  await policy.remove('posture-checks', checkId)
  await whole()
  expect(await policy.get('service-policies', who.policyId)).toMatchObject({
    postureCheckRoles: null,
    postureCheckRolesDisplay: [],
  })
  expect(await authorize(who)).toMatchObject({ policyIds: [who.policyId] })
})
