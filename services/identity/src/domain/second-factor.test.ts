import { expect, test } from 'vitest'
import { codeAt, newRecoveryCodes, newSecondFactor, passedBy, provisioningUrl } from './second-factor.js'

const factor = newSecondFactor()
const now = 1_800_000_000_000
const step = now / 30_000
const passed = (code: string, used: readonly number[] = []) => passedBy(code, factor, used, now)

test('codes are those of RFC 6238', () => {
  const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ' // 12345678901234567890
  expect(codeAt(secret, Math.floor(59 / 30))).toBe('287082')
  expect(codeAt(secret, Math.floor(1111111109 / 30))).toBe('081804')
})

test.each([-2, -1, 0, 1, 2])('a code of %i steps from now is accepted, once', (away) => {
  const code = codeAt(factor.secret, step + away)
  expect(passed(code)).toEqual({ step: step + away })
  expect(passed(code, [step + away])).toBeUndefined()
})

test.each([-3, 3])('a code of %i steps from now is refused', (away) => {
  expect(passed(codeAt(factor.secret, step + away))).toBeUndefined()
})

test('a recovery code stands for a code', () => {
  const [one = ''] = factor.recoveryCodes
  expect(passed(one)).toEqual({ recoveryCode: one })
  for (const code of ['', one.toLowerCase(), `${one}A`, 'abcdef']) expect(passed(code)).toBeUndefined()
})

test('recovery codes are twenty different ones in base32', () => {
  const codes = newRecoveryCodes()
  expect(new Set(codes).size).toBe(20)
  for (const code of codes) expect(code).toMatch(/^[A-Z2-7]{6}$/)
})

test('apps read issuer, name and secret from the URL', () => {
  expect(provisioningUrl('ABC', 'openziti.io', 'a b')).toBe(
    'otpauth://totp/openziti.io:a%20b?issuer=openziti.io&secret=ABC',
  )
  for (const [issuer, name] of [
    ['a & b = c', 'Laptop #3'],
    ['corp: x/y', 'who? 100% sure: ä/ö'],
  ] as const) {
    const { pathname, searchParams, hash } = new URL(provisioningUrl('ABC', issuer, name))
    expect(pathname.slice(1).split(':').map(decodeURIComponent)).toEqual([issuer, name])
    expect([searchParams.get('issuer'), searchParams.get('secret'), hash]).toEqual([issuer, 'ABC', ''])
  }
})
