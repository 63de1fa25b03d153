import { expect, test } from 'vitest'
import { sampleCheck } from '../../../testing/sample-check.js'
import { isForRouters } from './mfa-check.js'

test.each([
  ['a code', { typeId: 'MFA', timeoutSeconds: 60, promptOnWake: false, promptOnUnlock: false }, false],
  ['a code after waking', { typeId: 'MFA', promptOnWake: true }, true],
  ['a code after unlocking', { typeId: 'MFA', promptOnUnlock: true }, true],
  ['a device', { typeId: 'OS' }, true],
])('routers evaluate a check of %s: %j', (_what, members, expected) => {
  expect(isForRouters({ ...sampleCheck, ...members })).toBe(expected)
})

test('routers get a check that is unknown here', () => {
  expect(isForRouters(undefined)).toBe(true)
})
