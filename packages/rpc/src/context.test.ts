import { expect, test } from 'vitest'
import { traceIdOf, traceparentOf } from './context.js'

const given = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test('the trace of the client is kept', () => {
  expect(traceparentOf(given)).toBe(given)
  expect(traceIdOf({ traceparent: given })).toBe('0af7651916cd43dd8448eb211c80319c')
})

test.each([
  undefined,
  '',
  'garbage',
  given.toUpperCase(),
  `${given}-more`,
  '00-00000000000000000000000000000000-b7ad6b7169203331-01',
  '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
])('a new trace begins where the client names none: %s', (header) => {
  const [first, second] = [traceparentOf(header), traceparentOf(header)]
  expect(traceparentOf(first)).toBe(first)
  expect(first).not.toBe(second)
})
