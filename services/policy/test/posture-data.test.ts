import { expect, test } from 'vitest'
import { admin, as, jsonOf, newName, parsed, type Replica } from './network.js'
import { caller, domain, postureNetwork } from './posture.js'

const { network, policy, other, catchUp, check, submit, guarded, authorize, postureOf } =
  await postureNetwork()

const processCheck = () => check({ typeId: 'PROCESS', process: { osType: 'Linux', path: '/a' } })
const runs = (id: string, path: string) => ({ id, typeId: 'PROCESS', path, isRunning: true })

test('a report changes the key of the list and moves its time, in every replica', async () => {
  const who = await guarded(await check({}))
  const header = async (replica: Replica) => {
    await catchUp(replica)
    return replica.policy.getHeader({ identityId: who.alice }, admin)
  }
  const before = await header(other)
  expect((await header(policy)).contentKey).toBe(before.contentKey)
  await submit(who.alice, domain('a.example'))
  const after = await header(other)
  expect(after.contentKey).not.toBe(before.contentKey)
  expect(after.lastChangeAtMs).toBeGreaterThan(before.lastChangeAtMs)
  await submit(who.alice, domain('a.example'))
  const again = await header(other)
  expect(again.contentKey).toBe(after.contentKey)
  expect(again.lastChangeAtMs).toBeGreaterThan(after.lastChangeAtMs)
})

test('posture outlives a restart, and is deleted with its identity', async () => {
  const who = await guarded(await check({}))
  await submit(who.alice, domain('a.example'), { id: 'x', typeId: 'ENDPOINT_STATE', woken: true })
  const data = async () => parsed((await policy.policy.getPostureData({ identityId: who.alice }, admin)).json)
  expect(await data()).toMatchObject({
    domain: { domain: 'a.example', postureCheckId: 'any', timedOut: false },
    mac: { addresses: null, lastUpdatedAt: null, postureCheckId: '' },
    apiSessionPostureData: { s1: { endpointState: { unlockedAt: null, wokenAt: expect.any(String) } } },
  })
  await using again = await network.replica()
  await catchUp(again)
  expect(await authorize(who, {}, again)).toMatchObject({ policyIds: [who.policyId] })

  const position = await network.identity.remove(who.alice)
  await policy.changes.reach({ schema: 'identity', position }, as({}))
  expect(await data()).toMatchObject({ domain: { domain: null }, apiSessionPostureData: {} })
})

test('the endpoints of an identity share a budget; a report beyond it is refused and changes nothing', async () => {
  const [checkId, who] = [await processCheck(), newName()]
  await submit(who, domain('a.example'), runs(checkId, '/a'))
  const before = await postureOf(who)
  const head = await policy.changeLog.head()
  const many = Array.from({ length: 30 }, (_, n) => runs(checkId, `\u0001`.repeat(400) + n))
  await expect(submit(who, domain('b.example'), ...many)).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'postureResponse' },
  })
  expect([await postureOf(who), await policy.changeLog.head()]).toEqual([before, head])
  for (const one of many.slice(0, 20)) await submit(who, one)
  expect((await postureOf(who)).processes).toHaveLength(21)
  await expect(Promise.all(many.map((one) => submit(who, one)))).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
  })
})

test('reports for checks that do not exist are not stored, and are dropped with their check', async () => {
  const [first, second, who] = [await processCheck(), await processCheck(), newName()]
  await submit(who, runs(first, '/a'), runs(second, '/b'), runs('nothing', '/c'))
  const ids = async () => (await postureOf(who)).processes.map(({ postureCheckId }) => postureCheckId)
  expect(await ids()).toEqual([first, second])
  await policy.remove('posture-checks', first)
  await submit(who, domain('a.example'))
  expect(await ids()).toEqual([second])
})

test('states of API sessions that have ended make room', async () => {
  const who = newName()
  const wake = (apiSessionId: string) =>
    policy.policy.submitPosture(
      { responses: [jsonOf({ id: 'x', typeId: 'ENDPOINT_STATE', woken: true })] },
      caller(who, apiSessionId),
    )
  for (let n = 0; n < 60; n++) {
    await wake(`${who}-${n}`)
    await catchUp()
  }
  expect(Object.keys((await postureOf(who)).apiSessionPostureData).length).toBeLessThan(60)
  expect((await postureOf(who)).apiSessionPostureData).toHaveProperty(`${who}-59`)
})

test('an answer waits for sessions only if a response fails a check that passed', async () => {
  const { alice } = await guarded(await check({ domains: ['a.example'] }))
  const waits = async (...names: string[]) => {
    await submit(alice, ...names.map(domain))
    return network.waits.filter(({ id }) => id === alice)
  }
  expect(await waits('b.example')).toEqual([])
  expect(await waits('a.example')).toEqual([])
  expect(await waits('A.example')).toEqual([])
  expect(await waits('b.example')).toEqual([{ id: alice, schemas: ['sessions'] }])
})
