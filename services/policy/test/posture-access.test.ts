import { Access } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { admin, newName, parsed } from './network.js'
import { caller, domain, now, postureNetwork } from './posture.js'

const { network, policy, other, catchUp, check, mfaCheck, submit, guarded, authorize, pass } =
  await postureNetwork()

test('a service is refused until the posture passes, and the refusal names the checks that fail', async () => {
  const checkId = await check({})
  const who = await guarded(checkId)
  const refused = {
    code: 'INVALID_POSTURE',
    detail: `Failed to pass posture checks for service policies: [${who.policyId}]`,
    data: { [who.policyId]: [{ id: checkId, isPassing: false, typeId: 'DOMAIN' }] },
  }
  await expect(authorize(who)).rejects.toMatchObject(refused)
  await submit(who.alice, domain('b.example'))
  await expect(authorize(who)).rejects.toMatchObject(refused)
  const { position } = await submit(who.alice, domain('A.example'))
  if (!position) throw new Error('no change was appended')
  const allowed = await authorize(who, { policy: position })
  expect(allowed).toMatchObject({ policyIds: [who.policyId], routerIds: [`r-${who.alice}`] })
  expect(await authorize(who, { policy: position }, other)).toMatchObject({ policyIds: [who.policyId] })
})

test('one policy whose checks pass is enough, and it alone is named', async () => {
  const who = await guarded(await check({}))
  const roles = { identityRoles: [`@${who.alice}`], serviceRoles: [`@${who.service}`] }
  const open = await policy.create('service-policies', {
    name: newName(),
    type: 'Dial',
    semantic: 'AllOf',
    ...roles,
  })
  await catchUp()
  expect((await authorize(who)).policyIds).toEqual([open])
})

test('administrators read the last hundred refused requests, oldest first', async () => {
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

test('an access is lost when posture fails, but an admin keeps its own', async () => {
  const who = await guarded(await check({}))
  const root = newName()
  await network.identity.put(root, { isAdmin: true })
  const dial = { access: Access.ACCESS_DIAL, apiSessionId: 's1', postureAtRouters: false }
  const held = [
    { identityId: who.alice, serviceId: who.service, ...dial },
    { identityId: root, serviceId: who.service, ...dial },
  ]
  const lost = async () => {
    await catchUp()
    return (await policy.policy.findLost({ held }, admin)).lost
  }
  await submit(who.alice, domain('a.example'))
  expect(await lost()).toEqual([false, false])
  await submit(who.alice, domain('b.example'))
  expect(await lost()).toEqual([true, false])
})

test('the policies that require a posture check are found', async () => {
  const [checkId, another] = [await check({}), await check({})]
  const [{ policyId }, { policyId: elsewhere }] = [await guarded(checkId), await guarded(another)]
  await catchUp()
  const { policyIds } = await policy.policy.findRequiring({ postureCheckIds: [checkId, 'unknown'] }, admin)
  expect(policyIds).toContain(policyId)
  expect(policyIds).not.toContain(elsewhere)
})

test('a list of refused requests has as many as fit a message', async () => {
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

test('a service shows the checks that it requires of its viewer, and whether they pass', async () => {
  const path = { osType: 'Linux', path: '/a', hashes: ['ab'] }
  const checkId = await check({ typeId: 'PROCESS', process: path, tags: { a: 'b' } })
  const who = await guarded(checkId)
  const shown = async () => {
    await catchUp()
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
  await submit(who.alice, { id: checkId, typeId: 'PROCESS', path: '/a', isRunning: true, hash: 'A:B' })
  expect(await shown()).toEqual([
    { ...asked, isPassing: true, postureQueries: [{ ...query, isPassing: true }] },
  ])
})

test('a deleted check is removed from policies, and no longer required', async () => {
  const checkId = await check({})
  const who = await guarded(checkId)
  await policy.remove('posture-checks', checkId)
  await catchUp()
  expect(await policy.get('service-policies', who.policyId)).toMatchObject({
    postureCheckRoles: null,
    postureCheckRolesDisplay: [],
  })
  expect(await authorize(who)).toMatchObject({ policyIds: [who.policyId] })
})

const refused = { code: 'INVALID_POSTURE' }
const authorizeAtRouters = (who: Parameters<typeof authorize>[0]) => authorize(who, {}, policy, true)
const lostAtRouters = async (
  { alice, service }: Parameters<typeof authorize>[0],
  postureAtRouters = true,
) => {
  const held = [
    {
      identityId: alice,
      serviceId: service,
      access: Access.ACCESS_DIAL,
      apiSessionId: 's1',
      postureAtRouters,
    },
  ]
  return (await policy.policy.findLost({ held }, admin)).lost
}

test('routers may evaluate checks of devices that the client has reported to none here', async () => {
  const who = await guarded(await check({}))
  await expect(authorize(who)).rejects.toMatchObject(refused)
  const granted = { policyIds: [who.policyId], postureAtRouters: true, lasts: false }
  expect(await authorizeAtRouters(who)).toMatchObject(granted)
  expect([await lostAtRouters(who), await lostAtRouters(who, false)]).toEqual([[false], [true]])

  await submit(who.alice, domain('a.example'))
  await catchUp()
  expect(await authorizeAtRouters(who)).toMatchObject({ postureAtRouters: false, lasts: true })
  await policy.entities.delete({ kind: 'service-policies', id: who.policyId }, admin)
  await catchUp()
  await expect(authorizeAtRouters(who)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(await lostAtRouters(who)).toEqual([true])
})

test('the second factor is evaluated here, wherever devices are', async () => {
  const mfaId = await mfaCheck({ timeoutSeconds: 60 })
  const who = await guarded(mfaId, { postureCheckRoles: [`@${await check({})}`, `@${mfaId}`] })
  await expect(authorizeAtRouters(who)).rejects.toMatchObject(refused)
  expect(await lostAtRouters(who)).toEqual([true])
  await pass(who.alice, now())
  expect(await authorizeAtRouters(who)).toMatchObject({ postureAtRouters: true })
  expect(await lostAtRouters(who)).toEqual([false])
  await pass(who.alice, new Date(Date.now() - 61_000).toISOString())
  await expect(authorizeAtRouters(who)).rejects.toMatchObject(refused)
  expect(await lostAtRouters(who)).toEqual([true])
})
