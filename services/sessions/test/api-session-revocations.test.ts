import { expect, test } from 'vitest'
import { type ApiSessions, openApiSessions } from '../src/access/api-sessions.js'
import { fakeIdentity } from './access.js'
import { log } from './store.js'

const hour = 3_600_000

/** API sessions in memory, with the ids that the listener was told of as revoked and as reinstated. */
async function memoryOf(identity: ReturnType<typeof fakeIdentity>) {
  const told: string[] = []
  const nothing = () => undefined
  const sessions = await openApiSessions(
    identity.source,
    {
      added: nothing,
      updated: nothing,
      removed: ({ id }) => void told.push(`removed ${id}`),
      identityChanged: nothing,
      applied: nothing,
      reloaded: nothing,
      revoked: (id) => void told.push(`revoked ${id}`),
      reinstated: (id) => void told.push(`reinstated ${id}`),
    },
    log,
  )
  await sessions.catchUp(AbortSignal.timeout(30_000))
  return Object.assign(sessions, { told })
}

const caughtUp = async (sessions: ApiSessions) => {
  await sessions.catchUp(AbortSignal.timeout(30_000))
  return Object.fromEntries(sessions.revocations())
}

test('an API session that ends before its access tokens stays revoked until they have expired', async () => {
  const identity = fakeIdentity()
  const session = identity.bearer('alice', { id: '1', token: 'eyJ.1' })
  await using memory = await memoryOf(identity)
  const untilMs = Date.now() + hour
  identity.end(session.id)
  identity.revoke(session, untilMs)
  const revoked = { [session.id]: { identityId: 'alice', untilMs } }
  expect(await caughtUp(memory)).toEqual(revoked)
  expect(memory.told).toEqual([`removed ${session.id}`, `revoked ${session.id}`])
  expect(memory.byId(session.id)).toBeUndefined()

  await using loaded = await memoryOf(identity)
  expect(Object.fromEntries(loaded.revocations())).toEqual(revoked)

  identity.revoke(session, Date.now() - 1)
  await caughtUp(memory)
  memory.expire()
  expect(memory.revocations().size).toBe(0)
})

test('an API session whose access tokens count again is not revoked', async () => {
  const identity = fakeIdentity()
  const session = identity.bearer('alice', { id: '1', token: 'eyJ.1' })
  await using memory = await memoryOf(identity)
  identity.revoke(session, Date.now() + hour)
  expect(Object.keys(await caughtUp(memory))).toEqual([session.id])
  identity.put(session)
  expect(await caughtUp(memory)).toEqual({})
  expect(memory.told).toEqual(['removed', 'revoked', 'reinstated'].map((word) => `${word} ${session.id}`))
  expect(memory.byId(session.id)).toMatchObject({ token: 'eyJ.1' })
})
