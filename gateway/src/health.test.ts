import { expect, test } from 'vitest'
import { gatewayHealth } from './health.js'

test('a gateway becomes ready when it has heard all parts, and stays ready without one until it stops', () => {
  const states = { identity: 'silent', pki: 'ok' }
  let isServing = true
  const health = gatewayHealth(
    () => states,
    () => isServing,
  )
  expect(health()).toEqual({ ready: false, checks: { identity: 'silent', pki: 'ok', serving: 'ok' } })
  states.identity = 'ok'
  expect(health().ready).toBe(true)
  states.pki = 'silent'
  expect(health()).toEqual({ ready: true, checks: { identity: 'ok', pki: 'silent', serving: 'ok' } })
  isServing = false
  expect(health()).toEqual({ ready: false, checks: { identity: 'ok', pki: 'silent', serving: 'no' } })
})
