import { openAlarm } from '@overlay/process/async'
import { Access } from '@overlay/rpc'
import { type ChangeLog, withLoadedRows } from '@overlay/store/change-log'
import type { Names } from '@overlay/store/kind-store'
import { expect, test } from 'vitest'
import { identityConsumer } from '../src/consumers/identity.js'
import { lastLapse, mfaTimings } from '../src/domain/authorization/mfa-lapses.js'
import { reportLapses, startReportingLapses } from '../src/engine/report-lapses.js'
import { admin, jsonOf, parsed } from './network.js'
import { domain, now, postureNetwork } from './posture.js'

const { network, policy, other, catchUp, check, mfaCheck, submit, guarded, authorize, pass, postureOf } =
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
    postureAtRouters: false,
  }))
  expect((await policy.policy.findLost({ held: lost }, admin)).lost).toEqual([true, false])
})

test('a grant that asks for the second factor does not last; one that asks for other posture does', async () => {
  const who = await guarded(await mfaCheck())
  await pass(who.alice, now())
  expect(await authorize(who)).toMatchObject({ lasts: false })
  const plain = await guarded(await check({}))
  await submit(plain.alice, domain('a.example'))
  await catchUp()
  expect(await authorize(plain)).toMatchObject({ lasts: true })
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
  const start = Date.now()
  const all = (atMs: number) =>
    Promise.all(
      [policy, other, policy].map(({ changeLog }) => reportLapses(changeLog, new Map([[who.alice, atMs]]))),
    )
  await pass(who.alice, now())
  const reports = reportsOf(who.alice)
  expect([await reports(() => all(start + 60_001)), await reports(() => all(start + 60_001))]).toEqual([1, 0])
  expect([await reports(() => all(start + 120_001)), await reports(() => all(start + 60_001))]).toEqual([
    1, 0,
  ])
})

test('a lapse is reported at its time, and judged as past by a replica whose clock is behind', async () => {
  const who = await guarded(await mfaCheck({ timeoutSeconds: 86_400 }))
  await pass(who.alice, now())
  await Promise.all([catchUp(), catchUp(other)])
  const { state } = policy.engine
  const posture = state.postureData.get(who.alice)
  const lapseMs = (posture && lastLapse(mfaTimings(state), posture, Infinity)) ?? 0
  const clock = openTestClock(lapseMs - 1)
  const reports = reportsOf(who.alice)
  await using _reporting = startReportingLapses(policy.changeLog, policy.engine, clock)
  await clock.isAsleep()
  expect(await reports(() => clock.advance(0))).toBe(0)
  expect(await authorize(who, {}, other)).toMatchObject({ policyIds: [who.policyId] })

  expect(await reports(() => clock.advance(1))).toBe(1)
  await catchUp(other)
  await expect(authorize(who, {}, other)).rejects.toMatchObject({ code: 'INVALID_POSTURE' })
  expect(await reports(() => clock.advance(1))).toBe(0)
})

test('a lapse whose report fails is reported again', async () => {
  const who = await guarded(await mfaCheck({ timeoutSeconds: 43_200 }))
  await pass(who.alice, now())
  await catchUp()
  let failures = 1
  const failing: ChangeLog = {
    ...policy.changeLog,
    write: (...args) =>
      failures-- > 0 ? Promise.reject(new Error('no database')) : policy.changeLog.write(...args),
  }
  const clock = openTestClock(Date.now() + 43_201_000)
  const reports = reportsOf(who.alice)
  await using _reporting = startReportingLapses(failing, policy.engine, clock)
  expect(await reports(() => clock.isAsleep())).toBe(1)
  expect(failures).toBeLessThan(0)
})

/** Counts the reports of lapses of an identity while something happens. */
const reportsOf = (identityId: string) => async (act: () => Promise<unknown>) => {
  await Promise.all([catchUp(), catchUp(other)])
  const before = await policy.changeLog.head()
  await act()
  const { changes } = await policy.changeLog.pull(before)
  return changes.filter(({ kind, id }) => kind === 'posture-data' && id === identityId).length
}

/** A clock that stands still between calls of `advance`, which return when the reporter waits again. */
function openTestClock(atMs: number) {
  let nowMs = atMs
  const asleep = openAlarm()
  const awake = openAlarm()
  let isSleeping = false
  const signal = new AbortController().signal
  const isAsleep = () => (isSleeping ? Promise.resolve() : asleep.sleep(signal))
  return {
    now: () => nowMs,
    alarm: {
      ring: awake.ring,
      async sleep(stop: AbortSignal) {
        isSleeping = true
        asleep.ring()
        await awake.sleep(stop)
        isSleeping = false
      },
    },
    isAsleep,
    async advance(ms: number) {
      nowMs += ms
      await isAsleep()
      const next = asleep.sleep(signal)
      awake.ring()
      await next
    },
  }
}

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
