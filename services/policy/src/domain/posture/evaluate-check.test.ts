import { expect, test } from 'vitest'
import { sampleCheck } from '../../../testing/sample-check.js'
import { POSTURE_BUDGET_BYTES } from '../../limits.js'
import { passes } from './evaluate-check.js'
import { timeoutRemaining } from './mfa-check.js'
import type { Check } from './posture-check.js'
import {
  emptyPosture,
  type PostureData,
  type PostureResponse,
  postureBytes,
  withMfa,
  withoutEnded,
  withResponse,
} from './posture-data.js'

const at = '2026-01-01T00:00:00.000Z'
const seconds = (count: number): number => Date.parse(at) + count * 1000
const later = (count: number): string => new Date(seconds(count)).toISOString()
const after = (...responses: PostureResponse[]): PostureData =>
  responses.reduce((data, response) => withResponse(data, response, 's1', at), emptyPosture)
const passing = (check: Partial<Check>, data: PostureData, nowMs = seconds(0), apiSessionId = 's1') =>
  passes({ ...sampleCheck, ...check }, { data, apiSessionId, nowMs })

const types = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'PROCESS_MULTI', 'MFA', 'UNKNOWN']
test.each(types)('an endpoint without reports passes no check: %s', (typeId) => {
  const asking: Partial<Check> = {
    operatingSystems: [{ type: 'Linux', versions: null }],
    domains: ['a'],
    macAddresses: ['aa'],
    semantic: 'AllOf',
    processes: [{ osType: 'Linux', path: '/a' }],
  }
  expect(passing({ typeId, ...asking }, emptyPosture)).toBe(false)
})

test.each([
  ['of the same type', 'linux', '', [{ type: 'Linux', versions: null }], true],
  ['of another type', 'Windows', '10.0.0', [{ type: 'Linux', versions: null }], false],
  ['in one of the ranges', 'Linux', '6.1.0', [{ type: 'Linux', versions: ['<5.0.0', '>=6.0.0'] }], true],
  ['in no range', 'Linux', '5.5.0', [{ type: 'Linux', versions: ['<5.0.0', '>=6.0.0'] }], false],
  ['whose version is none', 'Linux', '6.1', [{ type: 'Linux', versions: ['>=6.0.0'] }], false],
])('an operating system %s', (_what, type, version, operatingSystems, expected) => {
  const data = after({ id: 'any', typeId: 'OS', type, version })
  expect(passing({ typeId: 'OS', operatingSystems }, data)).toBe(expected)
})

test('a domain is compared without its case, whichever check the report answers', () => {
  const data = after({ id: 'any', typeId: 'DOMAIN', domain: 'Corp.Example' })
  expect(passing({ typeId: 'DOMAIN', domains: ['x', 'corp.EXAMPLE'] }, data)).toBe(true)
  expect(passing({ typeId: 'DOMAIN', domains: ['x'] }, data)).toBe(false)
})

test('one address is enough, however it is written', () => {
  const data = after({ id: 'any', typeId: 'MAC', macAddresses: ['11:11', 'AA-bb:CC'] })
  expect(passing({ typeId: 'MAC', macAddresses: ['ff', 'aabbcc'] }, data)).toBe(true)
  expect(passing({ typeId: 'MAC', macAddresses: ['ff'] }, data)).toBe(false)
})

const process = (more: Partial<Extract<PostureResponse, { typeId: 'PROCESS' }>>): PostureResponse => ({
  id: 'k1',
  typeId: 'PROCESS',
  path: '/a',
  isRunning: true,
  hash: 'ab:cd',
  signerFingerprints: ['01:EF'],
  ...more,
})
test.each([
  ['that runs', {}, {}, true],
  ['that does not run', {}, { isRunning: false }, false],
  ['reported for another check', {}, { id: 'k2' }, false],
  ['whose hash is asked for in another form', { 'process.hashes': ['ff', 'AB:CD'] }, {}, true],
  ['of another hash', { 'process.hashes': ['ff'] }, {}, false],
  ['of another signer', { 'process.signerFingerprint': 'ff' }, {}, false],
  ['of the signer, in another form', { 'process.signerFingerprint': '01ef' }, {}, true],
  ['without a hash, where what is asked for is none', { 'process.hashes': ['xyz'] }, { hash: '' }, false],
])('a process %s', (_what, check, report, expected) => {
  expect(passing({ typeId: 'PROCESS', ...check }, after(process(report)))).toBe(expected)
})
test('the last report of a process counts', () => {
  const check = { typeId: 'PROCESS' }
  expect(passing(check, after(process({}), process({ isRunning: false })))).toBe(false)
  expect(passing(check, after(process({ isRunning: false }), process({})))).toBe(true)
})

test('a check of several processes requires all or one, compared by path', () => {
  const processes = [
    { osType: 'Linux', path: '/a', hashes: ['AB:CD'] },
    { osType: 'Linux', path: '/b', signerFingerprints: ['01EF'] },
  ]
  const both = after(process({ id: 'x' }), process({ id: 'x', path: '/b' }))
  const one = after(process({ id: 'x', path: '/b' }))
  const none = after(process({ path: '/b', signerFingerprints: [] }))
  const outcomes = (semantic: 'AllOf' | 'AnyOf') =>
    [both, one, none].map((data) => passing({ typeId: 'PROCESS_MULTI', semantic, processes }, data))
  expect(outcomes('AllOf')).toEqual([true, false, false])
  expect(outcomes('AnyOf')).toEqual([true, true, false])
})

const mfa = (state: object): PostureData => ({ ...emptyPosture, apiSessions: { s1: state } })
test.each([
  ['has given none', {}, {}, false],
  ['has given one', {}, { passedMfaAt: at }, true],
  ['gave it in time', { timeoutSeconds: 600 }, { passedMfaAt: at }, true],
  ['gave it too long ago', { timeoutSeconds: 60 }, { passedMfaAt: at }, false],
  ['gave it for ever', { timeoutSeconds: -1 }, { passedMfaAt: at }, true],
  ['woke before it', { promptOnWake: true }, { wokenAt: at, passedMfaAt: later(1) }, true],
  ['woke a moment ago', { promptOnWake: true }, { passedMfaAt: at, wokenAt: later(50) }, true],
  [
    'woke and gave no other',
    { promptOnWake: true },
    { passedMfaAt: later(-900), wokenAt: later(-400) },
    false,
  ],
  [
    'unlocked and gave no other',
    { promptOnUnlock: true },
    { passedMfaAt: later(-900), unlockedAt: later(-400) },
    false,
  ],
  ['unlocked, which the check ignores', {}, { passedMfaAt: later(-900), unlockedAt: later(-400) }, true],
])('who %s passes a check for a code or does not', (_who, check, state, expected) => {
  expect(passing({ typeId: 'MFA', ...check }, mfa(state), seconds(100))).toBe(expected)
})
test('a second factor counts for its API session only', () => {
  expect(passing({ typeId: 'MFA' }, mfa({ passedMfaAt: at }), seconds(1), 's2')).toBe(false)
})
test.each([
  ['no time-out', { timeoutSeconds: -1 }, { passedMfaAt: at }, -1],
  ['no code', { timeoutSeconds: 600 }, {}, 0],
  ['a code', { timeoutSeconds: 600 }, { passedMfaAt: at }, 500],
  ['a code of long ago', { timeoutSeconds: 60 }, { passedMfaAt: at }, 0],
  [
    'a code before waking',
    { timeoutSeconds: 600, promptOnWake: true },
    { passedMfaAt: at, wokenAt: later(40) },
    240,
  ],
  [
    'a code after waking',
    { timeoutSeconds: 600, promptOnWake: true },
    { passedMfaAt: at, wokenAt: later(-9) },
    500,
  ],
])('the time that is left with %s', (_what, check, state, expected) => {
  expect(timeoutRemaining({ ...sampleCheck, ...check }, state, seconds(100))).toBe(expected)
})

test('reports for deleted checks and states of ended API sessions are dropped, and no others', () => {
  const woken: PostureResponse = { id: 'x', typeId: 'ENDPOINT_STATE', woken: true }
  const data = after(process({ id: 'gone' }), process({ id: 'here' }), woken)
  const ended = withoutEnded(withResponse(data, woken, 's2', at), new Set(['gone']), new Set(['s1']))
  expect(ended.processes.map(({ checkId }) => checkId)).toEqual(['here'])
  expect(Object.keys(ended.apiSessions)).toEqual(['s2'])
})

test('the states of the oldest API sessions are dropped, so that they never fill the budget', () => {
  const id = (n: number): string => `cmiwjs0000${String(n).padStart(15, '0')}`
  const awake: PostureResponse = { id: 'x', typeId: 'ENDPOINT_STATE', woken: true, unlocked: true }
  let data = emptyPosture
  for (let n = 0; n < 600; n++) data = withMfa(withResponse(data, awake, id(n), at), id(n), at)
  expect(Object.keys(data.apiSessions)).toHaveLength(300)
  expect(data.apiSessions).toHaveProperty(id(599))
  expect(postureBytes(data)).toBeLessThan(POSTURE_BUDGET_BYTES * 0.75)
})
