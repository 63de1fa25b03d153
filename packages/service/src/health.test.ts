import { expect, test } from 'vitest'
import { healthOf } from './health.js'

const bus = { connected: () => true }

test.each<[string, () => Promise<never>]>([
  ['is away', () => Promise.reject(new Error('connection refused'))],
  ['hangs', () => new Promise<never>(() => undefined)],
])('a database that %s is named, and makes the service unready', async (_what, head) => {
  expect(await healthOf({ head }, bus)()).toEqual({
    ready: false,
    checks: { database: 'does not answer', bus: 'ok' },
  })
})

test('a service is ready without the bus', async () => {
  const head = async () => ({ timeline: 't', number: 1 })
  expect(await healthOf({ head }, { connected: () => false })()).toEqual({
    ready: true,
    checks: { database: 'ok', bus: 'unavailable' },
  })
})
