import { cuidAt, newId, newTimeUuid } from '@overlay/store/kind-store'
import { expect, test, vi } from 'vitest'
import { routerIdOf } from './encode-api-sessions.js'

test('for routers, API sessions with UUIDs are in one order of time with all others', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 12), toFake: ['Date'] })
  try {
    const ids = [newId('cuid'), newTimeUuid(), newId('cuid'), newTimeUuid()].map((id) => {
      vi.advanceTimersByTime(5)
      return id
    })
    const before = cuidAt((Date.now() - 1000) * 1000, '0'.repeat(13))
    vi.advanceTimersByTime(5)
    const later = [newTimeUuid(), newId('cuid')]
    const seen = [before, ...ids, ...later].map(routerIdOf)
    expect(seen.every((id) => /^c[0-9a-z]{24}$/.test(id))).toBe(true)
    expect(seen.slice(1, 5).every((id) => id > before)).toBe(true)
    for (const newer of seen.slice(5)) for (const older of seen.slice(0, 5)) expect(newer > older).toBe(true)
  } finally {
    vi.useRealTimers()
  }
})
