import { expect, test } from 'vitest'
import { gatewayHealth } from './health.js'

test('a gateway becomes ready when it has heard the parts that it needs, and stays ready without one until it stops', () => {
  const states = { identity: 'unavailable', pki: 'ok', policy: 'ok', sessions: 'unavailable' }
  let isServing = true
  const health = gatewayHealth(
    () => states,
    () => isServing,
  )
  expect(health()).toEqual({ ready: false, checks: { ...states, serving: 'ok' } })
  states.identity = 'ok'
  expect(health().ready).toBe(true)
  states.pki = 'unavailable'
  expect(health()).toEqual({ ready: true, checks: { ...states, serving: 'ok' } })
  isServing = false
  expect(health()).toEqual({ ready: false, checks: { ...states, serving: 'no' } })
})
