import { expect, test } from 'vitest'
import { ownBytes } from './bytes.js'

test('bytes that are kept keep nothing else', () => {
  const own = ownBytes(Buffer.from('small'))
  expect(own.toString()).toBe('small')
  expect(own.buffer.byteLength).toBe(5)
})

test('bytes that are alone are not copied', () => {
  const alone = Buffer.allocUnsafeSlow(5)
  expect(ownBytes(alone)).toBe(alone)
})
