import { newTokenKey, signToken } from '@overlay/process/tokens/testing'
import { Fault, ownContext, type Position } from '@overlay/rpc'
import { beforeEach, expect, test } from 'vitest'
import { ALICE, sessionFor } from '../../testing/fakes.js'
import { accessClaims, ISSUER } from '../../testing/tokens.js'
import { renderSession } from './session.js'
import { openSessions, type Sessions } from './sessions.js'
import { openWritePositions } from './write-positions.js'

const at = (number: number, timeline = 't1'): Position => ({ timeline, number })
const T0 = Date.UTC(2026, 0, 1)

const stored = (token: string) => ({ token, bearers: [] })
const bearer = (...bearers: string[]) => ({ token: '', bearers })
const key = newTokenKey('k1')
const access = (more?: object): string => signToken(key, accessClaims(T0, more))

let now: number
let verified: string[]
let trusted: boolean
let received: Position
let asked: string[]
let bearersAsked: unknown[]
let beside: string[][]
let marked: { apiSessionIds: string[]; atMs: number[] }[]
let answer: () => Promise<ReturnType<typeof sessionFor>>
let unknownIds: string[]
let writePositions: ReturnType<typeof openWritePositions>
let sessions: Sessions

beforeEach(() => {
  now = T0
  trusted = true
  received = at(10)
  asked = []
  bearersAsked = []
  beside = []
  verified = []
  marked = []
  unknownIds = []
  answer = async () => sessionFor(ALICE)
  writePositions = openWritePositions()
  sessions = openSessions({
    identity: {
      getApiSession: ({ token, bearerTokens }) => {
        asked.push(token)
        beside.push(bearerTokens)
        return answer()
      },
      getBearerSession: (request) => {
        bearersAsked.push(request)
        return answer()
      },
      markActivity: async (request) => {
        marked.push(request)
        return { unknownIds }
      },
    },
    tokenKeys: {
      find: (id) => {
        verified.push(id)
        return id === key.id ? key.publicKey : undefined
      },
    },
    issuer: ISSUER,
    writePositions,
    followed: () => ({
      isFresh: () => trusted,
      isHeard: () => trusted,
      positions: () => ({ identity: received }),
      [Symbol.asyncDispose]: async () => undefined,
    }),
    log: { warn: () => undefined },
    context: () => ownContext(new AbortController().signal),
    now: () => now,
  })
})

test('a cached session is found without a call', async () => {
  await sessions.find(stored(ALICE))
  expect(sessions.find(stored(ALICE))).not.toBeInstanceOf(Promise)
  expect(asked.length).toBe(1)
})

test('a malformed token is refused without a call', async () => {
  await expect(async () => sessions.find(stored('not-a-token'))).rejects.toThrow(Fault)
  expect(asked).toEqual([])
})

test('a dropped session is loaded again', async () => {
  await sessions.find(stored(ALICE))
  sessions.drop('api-sessions s-2222')
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  await expect(sessions.find(stored(ALICE))).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('so is a session whose identity has changed', async () => {
  await sessions.find(stored(ALICE))
  sessions.drop('identities i-2222')
  await sessions.find(stored(ALICE))
  expect(asked.length).toBe(2)
})

test('a removal while the session is being loaded wins', async () => {
  let release: (session: ReturnType<typeof sessionFor>) => void = () => undefined
  answer = () => new Promise((resolve) => (release = resolve))
  const found = sessions.find(stored(ALICE))
  sessions.drop('api-sessions s-2222')
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  release(sessionFor(ALICE))
  await expect(found).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('while the owner is silent no cached session is valid, and its silence is no refusal', async () => {
  await sessions.find(stored(ALICE))
  trusted = false
  answer = () => Promise.reject(new Fault('UNAVAILABLE'))
  await expect(sessions.find(stored(ALICE))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  trusted = true
  expect(sessions.find(stored(ALICE))).not.toBeInstanceOf(Promise)
})

test('a write through this gateway invalidates sessions loaded before it', async () => {
  await sessions.find(stored(ALICE))
  writePositions.note('identity', at(11))
  await sessions.find(stored(ALICE)) // the change at 11 has not arrived yet and may have ended this session
  expect(asked.length).toBe(2)
  received = at(11)
  expect(sessions.find(stored(ALICE))).not.toBeInstanceOf(Promise)
})

test('a login or a new identity through this gateway invalidates no session', async () => {
  await sessions.find(stored(ALICE))
  writePositions.note('identity', at(11), 'addition')
  expect(sessions.find(stored(ALICE))).not.toBeInstanceOf(Promise)
})

test('a session loaded after the write is valid before the change arrives', async () => {
  writePositions.note('identity', at(11))
  answer = async () => sessionFor(ALICE, { position: at(11) })
  await sessions.find(stored(ALICE))
  expect(sessions.find(stored(ALICE))).not.toBeInstanceOf(Promise)
})

test('a session idle for longer than its timeout is loaded again', async () => {
  await sessions.find(stored(ALICE))
  now += 1800_000
  expect(sessions.find(stored(ALICE))).not.toBeInstanceOf(Promise)
  now += 1800_001
  await sessions.find(stored(ALICE))
  expect(asked.length).toBe(2)
})

test('a session at the end of its lifetime is loaded again, whatever its use', async () => {
  answer = async () => sessionFor(ALICE, { endsInMs: 60_000 })
  await sessions.find(stored(ALICE))
  now += 59_999
  expect(sessions.find(stored(ALICE))).not.toBeInstanceOf(Promise)
  now += 1
  expect(sessions.cached(stored(ALICE))).toBeUndefined()
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  await expect(sessions.find(stored(ALICE))).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('activity is reported in batches, once, with the last time', async () => {
  await sessions.find(stored(ALICE))
  now += 5000
  await sessions.find(stored(ALICE))
  await sessions.flush()
  await sessions.flush()
  expect(marked).toMatchObject([{ apiSessionIds: ['s-2222'], atMs: [T0 + 5000] }])
  expect((await sessions.find(stored(ALICE))).storedActivityMs).toBe(T0 + 5000)
})

test('no batch has more than a thousand sessions', async () => {
  for (let i = 0; i < 1001; i++) {
    const token = `${String(i).padStart(8, '0')}-0000-4000-8000-000000000000`
    sessions.add(sessionFor(token, { id: `s${i}` }))
  }
  await sessions.flush()
  expect(marked.map(({ apiSessionIds }) => apiSessionIds.length)).toEqual([1000, 1])
})

test('a session unknown to its owner is dropped', async () => {
  await sessions.find(stored(ALICE))
  unknownIds = ['s-2222']
  await sessions.flush()
  await sessions.find(stored(ALICE))
  expect(asked.length).toBe(2)
})

test('a cached session exists at the position of the changes received', async () => {
  answer = async () => sessionFor(ALICE, { position: at(10) })
  await sessions.find(stored(ALICE))
  received = at(12)
  expect(await sessions.find(stored(ALICE))).toMatchObject({ position: at(12) })
  writePositions.note('identity', at(13)) // may have ended it: loaded again
  expect(await sessions.find(stored(ALICE))).toMatchObject({ position: at(10) })
})

test('a session whose end arrived before its creation is not cached', async () => {
  sessions.drop('api-sessions s-2222')
  received = at(12)
  sessions.add(sessionFor(ALICE, { position: at(11) }))
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  await expect(async () => sessions.find(stored(ALICE))).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('a new session is cached', () => {
  sessions.add(sessionFor(ALICE, { position: at(10) }))
  expect(sessions.find(stored(ALICE))).not.toBeInstanceOf(Promise)
})

const bearerMessage = (more: Parameters<typeof sessionFor>[1] = {}) =>
  sessionFor('', {
    id: 's-alice',
    identityId: 'i-alice',
    endsInMs: 86_400_000,
    json: Buffer.from('{"id":"s-alice"}'),
    ...more,
  })

test('an access token is verified and looked up once, then found without either', async () => {
  answer = async () => bearerMessage()
  const token = access()
  const session = await sessions.find(bearer(token))
  expect(sessions.find(bearer(token))).toBe(session)
  expect(verified).toEqual(['k1'])
  expect(bearersAsked).toEqual([{ apiSessionId: 's-alice', identityId: 'i-alice' }])
})

test('an access token in the header of stored sessions is refused, also while it is cached', async () => {
  answer = async () => bearerMessage()
  const token = access()
  await sessions.find(bearer(token))
  for (const text of [`Bearer ${token}`, token, `bearer ${token}`])
    expect(sessions.cached(stored(text))).toBeUndefined()
})

test('the session of an access token ends with the token, and shows it', async () => {
  answer = async () => bearerMessage()
  const token = access()
  const session = await sessions.find(bearer(token))
  now += 600_000
  expect(sessions.find(bearer(token))).toBe(session) // used: it is not idle
  expect(renderSession(session)).toMatchObject({
    id: 's-alice',
    token,
    expirationSeconds: 1200,
    expiresAt: new Date(T0 + 1800_000).toISOString(),
    cachedLastActivityAt: new Date(T0 + 600_000).toISOString(),
  })
  expect(session.expiresAt).toBe('2026-01-01 00:30:00 +0000 UTC')
  now = T0 + 1799_999
  expect(sessions.cached(bearer(token))).toBe(session)
  now = T0 + 1800_000
  expect(sessions.cached(bearer(token))).toBeUndefined()
  await expect(sessions.find(bearer(token))).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  expect(bearersAsked.length).toBe(1)
})

test('an access token does not outlive the session', async () => {
  answer = async () => bearerMessage({ endsInMs: 60_000 })
  const token = access()
  await sessions.find(bearer(token))
  now += 60_000
  expect(sessions.cached(bearer(token))).toBeUndefined()
})

test.each([['api-sessions s-alice'], ['identities i-alice'], ['keys k1']])(
  'after a change of %s an access token is verified and looked up again',
  async (tag) => {
    answer = async () => bearerMessage()
    const token = access()
    await sessions.find(bearer(token))
    sessions.drop(tag)
    answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
    await expect(sessions.find(bearer(token))).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
    expect([verified.length, bearersAsked.length]).toEqual([2, 2])
  },
)

test('all refusals of access tokens look the same', async () => {
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  const refused = ['x', access({ z_t: 'r' }), access({ exp: 1 }), access()]
  for (const token of refused)
    await expect(sessions.find(bearer(token))).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
      detail: 'unauthenticated for invalid credentials',
    })
})

test('only what is verified is asked for', async () => {
  for (const token of ['x', access({ z_t: 'r' }), access({ iss: 'https://other/oidc' }), `${access()}x`])
    await expect(sessions.find(bearer(token))).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  expect(bearersAsked).toEqual([])
})

test('the first valid access token wins', async () => {
  answer = async () => bearerMessage()
  const good = access()
  await sessions.find(bearer('x', good, access({ sub: 'i-other' })))
  expect(bearersAsked).toEqual([{ apiSessionId: 's-alice', identityId: 'i-alice' }])
})

test('an owner that does not answer refuses no access token', async () => {
  answer = () => Promise.reject(new Fault('UNAVAILABLE'))
  await expect(sessions.find(bearer(access()))).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test('the token of a stored session decides alone, and its refusal has a cause only beside an access token', async () => {
  answer = async () => bearerMessage()
  const token = access()
  await sessions.find(bearer(token))
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  const detail = 'unauthenticated for invalid credentials'
  await expect(sessions.find({ token: ALICE, bearers: [token] })).rejects.toMatchObject({ detail })
  await expect(sessions.find(stored(ALICE))).rejects.toMatchObject({ detail: undefined })
})

test('an access token in the place of a session token finds nothing, and the reverse', async () => {
  answer = async () => bearerMessage()
  const token = access()
  await sessions.find(bearer(token))
  await sessions.find(stored(ALICE))
  expect(sessions.cached(stored(token))).toBeUndefined()
  expect(sessions.cached(bearer(ALICE))).toBeUndefined()
})

test('while the owner is silent no access token is valid', async () => {
  answer = async () => bearerMessage()
  const token = access()
  await sessions.find(bearer(token))
  trusted = false
  expect(sessions.cached(bearer(token))).toBeUndefined()
})

const demanding = (secondTokenMs: number) => async () =>
  sessionFor(ALICE, { demandsToken: true, isPartial: secondTokenMs === 0, secondTokenMs })
const both = (...bearers: string[]) => ({ token: ALICE, bearers })

test('a token that the policy demands counts for requests that present it, until it expires', async () => {
  answer = demanding(0)
  expect(await sessions.find(stored(ALICE))).toMatchObject({ isPartial: true })
  answer = demanding(60_000)
  expect(await sessions.find(both('a', 'b', 'c'))).toMatchObject({ isPartial: false })
  expect(await sessions.find(both('a', 'b'))).toMatchObject({ isPartial: false })
  expect(await sessions.find(stored(ALICE))).toMatchObject({ isPartial: true })
  expect(beside).toEqual([[], ['a', 'b']])
  now += 60_000
  await sessions.find(both('a', 'b'))
  expect(beside).toEqual([[], ['a', 'b'], ['a', 'b']])
})

test('a session that awaits its second factor is asked for at each request', async () => {
  answer = async () => sessionFor(ALICE, { isPartial: true })
  expect(await sessions.find(stored(ALICE))).toMatchObject({ isPartial: true })
  answer = async () => sessionFor(ALICE, { isPartial: false })
  expect(await sessions.find(stored(ALICE))).toMatchObject({ isPartial: false })
  await sessions.find(stored(ALICE))
  expect(beside).toEqual([[], []])
})

test('a token that does not count is tried again with the next request', async () => {
  answer = demanding(0)
  await sessions.find(both('a'))
  await sessions.find(both('a'))
  expect(beside).toEqual([[], ['a'], ['a']])
})

test('without such a demand, tokens beside a session are not looked at', async () => {
  await sessions.find(both('a'))
  await sessions.find(both('b'))
  expect(beside).toEqual([[]])
})

test('a session that was opened with such a token is not cached without it', async () => {
  const opened = { ...(await demanding(60_000)()), position: at(10) }
  expect(sessions.add(opened).isPartial).toBe(false)
  answer = demanding(0)
  expect(await sessions.find(stored(ALICE))).toMatchObject({ isPartial: true })
})

test('what was found with a token is dropped with its session', async () => {
  answer = demanding(60_000)
  const { id } = await sessions.find(both('a'))
  sessions.drop(`api-sessions ${id}`)
  answer = demanding(0)
  expect(await sessions.find(both('a'))).toMatchObject({ isPartial: true })
})
