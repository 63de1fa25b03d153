import { goTime } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { ALICE, sessionFor } from '../../testing/fakes.js'
import { cachedSession, renderSession } from './session.js'

test.each([
  [Date.UTC(2026, 0, 1, 10, 0, 0, 123), '2026-01-01 10:00:00.123 +0000 UTC'],
  [Date.UTC(2026, 0, 1, 10, 0, 0, 120), '2026-01-01 10:00:00.12 +0000 UTC'],
  [Date.UTC(2026, 0, 1, 10, 0, 0), '2026-01-01 10:00:00 +0000 UTC'],
])('a time is printed without zeros at its end', (ms, text) => {
  expect(goTime(ms)).toBe(text)
})

test('what moves with time is added to what does not', () => {
  const session = cachedSession(sessionFor(ALICE), Date.UTC(2026, 0, 2))
  expect(renderSession(session)).toMatchObject({
    token: ALICE,
    createdAt: '2026-01-01T00:00:00.000Z',
    cachedLastActivityAt: '2026-01-02T00:00:00.000Z',
    expirationSeconds: 1800,
  })
})

test('a session expires no later than its lifetime ends', () => {
  const now = Date.UTC(2026, 0, 1)
  const session = cachedSession(sessionFor(ALICE, { endsInMs: 60_000 }), now)
  expect(renderSession(session)).toMatchObject({ expiresAt: '2026-01-01T00:01:00.000Z' })
  expect(session.expiresAt).toBe('2026-01-01 00:01:00 +0000 UTC')
})
