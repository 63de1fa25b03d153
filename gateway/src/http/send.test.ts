import { expect, test } from 'vitest'
import { prepareBody } from './send.js'

test('an answer that is kept keeps nothing but its bytes', () => {
  const { bytes } = prepareBody('{"data":{}}')
  expect(bytes.toString()).toBe('{"data":{}}')
  expect(bytes.buffer.byteLength).toBe(bytes.length)
})
