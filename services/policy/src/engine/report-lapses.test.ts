import { expect, test } from 'vitest'
import { sampleCheck } from '../../testing/sample-check.js'
import { emptyPosture } from '../domain/posture/posture-data.js'
import { emptyState } from '../domain/state.js'
import { openLapseSchedule } from './report-lapses.js'

const start = Date.parse('2026-01-01T00:00:00.000Z')
const at = (seconds: number): string => new Date(start + seconds * 1000).toISOString()
const signal = new AbortController().signal

function setup() {
  const state = emptyState()
  const schedule = openLapseSchedule(state)
  return {
    state,
    schedule,
    /** Null: the check is deleted. */
    setTimeoutSeconds(timeoutSeconds: number | null, id = 'k1') {
      if (timeoutSeconds === null) state.checkContents.delete(id)
      else
        state.checkContents.set(id, {
          revision: '',
          check: { ...sampleCheck, typeId: 'MFA', timeoutSeconds },
        })
      schedule.checksChanged()
      return schedule.renew(signal)
    },
    pass(identityId: string, seconds: number, apiSessionId = 's1') {
      const { apiSessions } = state.postureData.get(identityId) ?? emptyPosture
      const passed = { ...apiSessions, [apiSessionId]: { passedMfaAt: at(seconds) } }
      state.postureData.set(identityId, { ...emptyPosture, apiSessions: passed })
      schedule.put(identityId)
    },
    /** In seconds and milliseconds after the start. */
    next: () => (schedule.nextMs === undefined ? undefined : (schedule.nextMs - start) / 1000),
    take: (seconds: number) =>
      [...schedule.takeUntil(start + seconds * 1000)].map(([id, ms]) => [id, (ms - start) / 1000]),
  }
}

test('the next lapse of all identities comes first, and is taken not a millisecond earlier', async () => {
  const { setTimeoutSeconds, pass, next, take } = setup()
  await setTimeoutSeconds(5)
  pass('late', 10)
  pass('early', 2)
  expect(next()).toBe(7.001)
  expect(take(7)).toEqual([])
  expect(take(7.001)).toEqual([['early', 7.001]])
  expect(next()).toBe(15.001)
  pass('late', 20)
  expect(next()).toBe(25.001)
})

test('identities that passed before are scheduled once the checks are there', async () => {
  const { setTimeoutSeconds, pass, next, take } = setup()
  pass('one', 0)
  expect(next()).toBeUndefined()
  await setTimeoutSeconds(60)
  expect(next()).toBe(60.001)
  await setTimeoutSeconds(10)
  expect(next()).toBe(10.001)
  await setTimeoutSeconds(20, 'k2')
  expect(take(30)).toEqual([['one', 20.001]])
  pass('one', 40)
  await setTimeoutSeconds(null)
  expect(next()).toBe(60.001)
  await setTimeoutSeconds(null, 'k2')
  expect(next()).toBeUndefined()
})

test('a lapse that is reported is not taken again, but those behind it', async () => {
  const { state, schedule, setTimeoutSeconds, pass, next, take } = setup()
  await setTimeoutSeconds(5)
  pass('one', 0)
  pass('one', 3, 's2')
  expect(take(6)).toEqual([['one', 5.001]])
  expect(next()).toBeUndefined()
  state.lapsedAtMs.set('one', start + 5001)
  schedule.put('one')
  expect(next()).toBe(8.001)
})

test('an identity whose posture is removed has no lapse', async () => {
  const { state, schedule, setTimeoutSeconds, pass, next } = setup()
  await setTimeoutSeconds(5)
  pass('gone', 0)
  state.postureData.delete('gone')
  schedule.put('gone')
  expect(next()).toBeUndefined()
})
