import { DataState, DataStateChangeSet } from '@overlay/channel'
import { expect, test } from 'vitest'
import type { RevocationListener } from '../access/access-concern.js'
import type { Revocation } from '../domain/api-session.js'
import { FEW_REVOCATIONS } from '../limits.js'
import { openRevocations } from './revocations.js'

const revocation = { identityId: 'alice', untilMs: 4_000_000_000_000 }

test('revocations are encoded once for all routers, and again after many more or when one is withdrawn', async () => {
  const current = new Map<string, Revocation>()
  const listeners: RevocationListener[] = []
  const onRevocations = (one: RevocationListener): void => void listeners.push(one)
  await using revocations = openRevocations(
    { apiSessions: { revocations: () => current }, onRevocations },
    () => undefined,
  )
  let count = 0
  function revoke(): void {
    const id = `session-${count++}`
    current.set(id, revocation)
    listeners[0]?.revoked(id, revocation)
  }
  /** The ids, which both forms have, and what all routers share. */
  function read() {
    const { events, changes } = revocations.all()
    const ids = DataState.decode(Buffer.concat(events)).events.map((one) => one.revocation?.id)
    const others = DataStateChangeSet.decode(Buffer.concat(changes)).changes.map((one) => one.revocation?.id)
    expect(others).toEqual(ids)
    expect(ids).toEqual([...current.keys()])
    return [events[0], changes[0]]
  }
  for (let i = 0; i < FEW_REVOCATIONS; i++) revoke()
  const [state, set] = read()
  for (let i = 0; i < FEW_REVOCATIONS; i++) {
    revoke()
    const shared = read()
    expect(shared[0]).toBe(state)
    expect(shared[1]).toBe(set)
  }
  revoke()
  expect(read()[0]).not.toBe(state)

  const [before] = read()
  current.delete('session-7')
  listeners[0]?.reinstated('session-7')
  expect(read()[0]).not.toBe(before)
})
