import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sampleCheck } from '../../../testing/sample-check.js'
import { lapsesOf, passesMfa } from '../posture/mfa-check.js'
import type { Check } from '../posture/posture-check.js'
import { type EndpointState, emptyPosture } from '../posture/posture-data.js'
import { lastLapse, mfaTimings, nextLapse } from './mfa-lapses.js'

const start = Date.parse('2026-01-01T00:00:00.000Z')
const at = (seconds: number): string => new Date(start + seconds * 1000).toISOString()

const time = fc.integer({ min: 0, max: 1000 })
const checks = fc.record({
  timeoutSeconds: fc.constantFrom(-1, 1, 60, 600),
  promptOnWake: fc.boolean(),
  promptOnUnlock: fc.boolean(),
})
const endpoints = fc.record({ passed: time, woken: fc.option(time), unlocked: fc.option(time) }).map(
  ({ passed, woken, unlocked }): EndpointState => ({
    passedMfaAt: at(passed),
    ...(woken !== null && { wokenAt: at(woken) }),
    ...(unlocked !== null && { unlockedAt: at(unlocked) }),
  }),
)

test('an endpoint that passes keeps passing until a lapse', () => {
  const later = fc.integer({ min: 0, max: 2_000_000 })
  fc.assert(
    fc.property(checks, endpoints, later, later, (check, endpoint, a, b) => {
      const all = start + 1_000_000 // after all reports
      const [from, to] = [all + Math.min(a, b), all + Math.max(a, b)]
      if (lapsesOf(check, endpoint).some((lapse) => lapse > from && lapse <= to)) return
      expect(passesMfa(check, endpoint, from) && !passesMfa(check, endpoint, to)).toBe(false)
    }),
  )
})

const content = (check: Partial<Check>) => ({
  revision: '',
  check: { ...sampleCheck, typeId: 'MFA', ...check },
})

test('checks that lapse at the same times count once', () => {
  const checkContents = new Map([
    ['a', content({ timeoutSeconds: 60, promptOnWake: false, promptOnUnlock: false })],
    ['b', content({ timeoutSeconds: 60, promptOnWake: false, promptOnUnlock: false, name: 'other' })],
    ['c', content({ timeoutSeconds: 60, promptOnWake: true, promptOnUnlock: false })],
    ['d', content({ typeId: 'DOMAIN', timeoutSeconds: 20 })],
  ])
  expect(mfaTimings({ checkContents })).toEqual([
    { timeoutSeconds: 60, promptOnWake: false, promptOnUnlock: false },
    { timeoutSeconds: 60, promptOnWake: true, promptOnUnlock: false },
  ])
})

test('the lapses of an identity are those of each endpoint that passed, by each check', () => {
  const checks = [10, 60].map((timeoutSeconds) => ({
    timeoutSeconds,
    promptOnWake: false,
    promptOnUnlock: false,
  }))
  const apiSessions = { s1: { passedMfaAt: at(0) }, s2: { passedMfaAt: at(5) }, s3: { wokenAt: at(0) } }
  const posture = { ...emptyPosture, apiSessions }
  const lapses = [10, 15, 60, 65].map((seconds) => start + seconds * 1000 + 1)
  const next = []
  for (let ms = nextLapse(checks, posture, 0); ms !== undefined; ms = nextLapse(checks, posture, ms)) {
    expect(lastLapse(checks, posture, ms)).toBe(ms)
    expect(lastLapse(checks, posture, ms - 1)).toBe(next.at(-1))
    next.push(ms)
  }
  expect(next).toEqual(lapses)
})
