import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sampleCheck } from '../testing/sample-check.js'
import type { Check } from './check.js'
import { type EndpointState, emptyPosture } from './data.js'
import { lapsedBetween } from './lapses.js'
import { lapsesOf, passesMfa } from './mfa.js'

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
const posture = (endpoint: EndpointState) => ({ ...emptyPosture, apiSessions: { s1: endpoint } })

test('identities with a lapse are named, with the time of the last one', () => {
  const state = {
    checkContents: new Map([
      ['short', content({ timeoutSeconds: 10 })],
      ['long', content({ timeoutSeconds: 60 })],
      ['other', content({ typeId: 'DOMAIN', timeoutSeconds: 20 })],
    ]),
    postureData: new Map([
      ['both', posture({ passedMfaAt: at(0) })],
      ['one', posture({ passedMfaAt: at(50) })],
      ['later', posture({ passedMfaAt: at(99) })],
      ['none', posture({ wokenAt: at(0) })],
    ]),
  }
  expect([...lapsedBetween(state, start, start + 100_000)]).toEqual([
    ['both', start + 60_001],
    ['one', start + 60_001],
  ])
  expect([...lapsedBetween(state, start + 60_001, start + 100_000)]).toEqual([])
  expect([...lapsedBetween({ ...state, checkContents: new Map() }, 0, start + 100_000)]).toEqual([])
})
