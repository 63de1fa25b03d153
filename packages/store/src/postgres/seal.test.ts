import { expect, test } from 'vitest'
import { seal, unseal } from './seal.js'

const secret = 'a key secret of at least 32 characters'
const sealed = seal(secret, 'k1', 'private')

test('a sealed text comes back under its secret and its name', () => {
  expect(sealed).not.toContain('private')
  expect(unseal(secret, 'k1', sealed)).toBe('private')
})

test('what was sealed in the first form can still be opened', () => {
  expect(unseal(secret, 'k1', sealed.replace('v2', 'v1'))).toBe('private')
})

test.each([
  [
    'another secret',
    () => unseal('another key secret of some characters', 'k1', sealed),
    /key secret is not/,
  ],
  ['another name', () => unseal(secret, 'k2', sealed), /key secret is not/],
  ['another form', () => unseal(secret, 'k1', sealed.replace('v2', 'v9')), /unknown form/],
])('it does not come back under %s', (_what, open, message) => {
  expect(open).toThrow(message)
})
