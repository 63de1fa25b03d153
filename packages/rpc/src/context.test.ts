import { expect, test } from 'vitest'
import { traceIdOf, traceparentOf } from './context.js'

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test('the trace of the client is kept', () => {
  expect(traceparentOf(traceparent)).toBe(traceparent)
  expect(traceIdOf({ traceparent })).toBe('0af7651916cd43dd8448eb211c80319c')
})

test.each([
  undefined,
  '',
  'garbage',
  traceparent.toUpperCase(),
  `${traceparent}-more`,
  '00-00000000000000000000000000000000-b7ad6b7169203331-01',
  '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
])('a missing or malformed header starts a new trace: %s', (header) => {
  const [first, second] = [traceparentOf(header), traceparentOf(header)]
  expect(traceparentOf(first)).toBe(first)
  expect(first).not.toBe(second)
})
