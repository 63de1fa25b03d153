import { withLoadedRows } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import { Access } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { identityConsumer } from '../src/consumers/identity.js'
import { reportLapses } from '../src/engine/lapses.js'
import { admin, jsonOf, parsed } from './network.js'
import { now, postureNetwork } from './posture.js'

const { network, policy, other, catchUp, mfaCheck, submit, guarded, authorize, pass, postureOf } =
  await postureNetwork()

test('an API session passes at once in every replica when identity reports it, until identity revokes it', async () => {
  const who = await guarded(await mfaCheck())
  await catchUp(other) // of the service itself it hears a little later
  const { alice: identityId, service: serviceId } = who
  await expect(authorize(who)).rejects.toMatchObject({ code: 'INVALID_POSTURE' })
  await pass(identityId, now(), 's2')
  await expect(authorize(who)).rejects.toMatchObject({ code: 'INVALID_POSTURE' })
  await pass(identityId, now())
  for (const replica of [other, policy])
    expect(await authorize(who, {}, replica)).toMatchObject({ policyIds: [who.policyId] })

  await pass(identityId, null)
  await catchUp()
  const lost = ['s1', 's2'].map((apiSessionId) => ({
    identityId,
    serviceId,
    access: Access.ACCESS_DIAL,
    apiSessionId,
  }))
  expect((await policy.policy.findLost({ held: lost }, admin)).lost).toEqual([true, false])
})

test('after a load only the API sessions of its rows have passed', async () => {
  const who = await guarded(await mfaCheck())
  await pass(who.alice, now())
  const row = (id: string, mfaPassedAt: string | null) => ({
    kind: 'api-sessions',
    id,
    json: jsonOf({ identityId: who.alice, mfaPassedAt }),
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
    const { apiSessionPostureData } = await postureOf(who.alice)
    return Object.entries(apiSessionPostureData).flatMap(([id, { mfa }]) => (mfa.passedMfa ? [id] : []))
  }
  expect(await passed(row('s1', now()), row('s2', now()), row('s3', null))).toEqual(['s1', 's2'])
  expect(await passed(row('s1', null))).toEqual([])
})

test('a lapse is reported once, by the first replica, and once more for the next code', async () => {
  const who = await guarded(await mfaCheck({ timeoutSeconds: 60 }))
  const reports = async (look: () => Promise<unknown>) => {
    await Promise.all([catchUp(), catchUp(other)])
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
  expect([await reports(all), await reports(all)]).toEqual([1, 0])
  await pass(who.alice, new Date(Date.now() - 61_000).toISOString())
  expect([await reports(all), await reports(all)]).toEqual([1, 0])
  await pass(who.alice, now())
  expect(await reports(all)).toBe(0)
})

test('an endpoint that wakes is answered the services that will require another code', async () => {
  const who = await guarded(await mfaCheck({ promptOnWake: true, timeoutSeconds: 600 }))
  await guarded(await mfaCheck({ promptOnWake: true })) // of another identity
  const wake = async (state: object) => {
    const { services } = await submit(who.alice, { id: 'x', typeId: 'ENDPOINT_STATE', ...state })
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
