import { Fault, ownContext, type Position } from '@overlay/rpc'
import { beforeEach, expect, test } from 'vitest'
import { ALICE, sessionFor } from '../testing/fakes.js'
import { openSessions, type Sessions } from './sessions.js'
import { openWritePositions } from './write-positions.js'

const at = (number: number, timeline = 't1'): Position => ({ timeline, number })
const T0 = Date.UTC(2026, 0, 1)

let now: number
let trusted: boolean
let heard: Position
let asked: string[]
let marked: { apiSessionIds: string[]; atMs: number[] }[]
let answer: () => Promise<ReturnType<typeof sessionFor>>
let unknownIds: string[]
let writePositions: ReturnType<typeof openWritePositions>
let sessions: Sessions

beforeEach(() => {
  now = T0
  trusted = true
  heard = at(10)
  asked = []
  marked = []
  unknownIds = []
  answer = async () => sessionFor(ALICE)
  writePositions = openWritePositions()
  sessions = openSessions({
    identity: {
      getApiSession: ({ token }) => {
        asked.push(token)
        return answer()
      },
      markActivity: async (request) => {
        marked.push(request)
        return { unknownIds }
      },
    },
    writePositions,
    followed: () => ({
      trusted: () => trusted,
      positions: () => ({ identity: heard }),
      [Symbol.asyncDispose]: async () => undefined,
    }),
    log: { warn: () => undefined },
    context: () => ownContext(new AbortController().signal),
    now: () => now,
  })
})

test('a known session is found at once, without asking', async () => {
  await sessions.find(ALICE)
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
  expect(asked.length).toBe(1)
})

test('what is no token is refused without asking', () => {
  expect(() => sessions.find('not-a-token')).toThrow(Fault)
  expect(asked).toEqual([])
})

test('a removed session is asked for again', async () => {
  await sessions.find(ALICE)
  sessions.drop('api-sessions s-2222')
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  await expect(sessions.find(ALICE)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('so is one whose identity has changed', async () => {
  await sessions.find(ALICE)
  sessions.drop('identities i-2222')
  await sessions.find(ALICE)
  expect(asked.length).toBe(2)
})

test('a removal while the session is being loaded wins', async () => {
  let release: (session: ReturnType<typeof sessionFor>) => void = () => undefined
  answer = () => new Promise((resolve) => (release = resolve))
  const found = sessions.find(ALICE)
  sessions.drop('api-sessions s-2222')
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  release(sessionFor(ALICE))
  await expect(found).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('while the owner is silent nothing that is known is trusted, and its silence is no refusal', async () => {
  await sessions.find(ALICE)
  trusted = false
  answer = () => Promise.reject(new Fault('UNAVAILABLE'))
  await expect(sessions.find(ALICE)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  trusted = true
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
})

test('what was written through this gateway counts at once', async () => {
  await sessions.find(ALICE)
  writePositions.note('identity', at(11))
  await sessions.find(ALICE) // nobody has told us of 11 yet: it may have ended this session
  expect(asked.length).toBe(2)
  heard = at(11)
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
})

test('an answer that is new enough itself is used before the changes are heard', async () => {
  writePositions.note('identity', at(11))
  answer = async () => sessionFor(ALICE, { position: at(11) })
  await sessions.find(ALICE)
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
})

test('a session that was idle for longer than its time is asked for again', async () => {
  await sessions.find(ALICE)
  now += 1800_000
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
  now += 1800_001
  await sessions.find(ALICE)
  expect(asked.length).toBe(2)
})

test('a session that has reached its lifetime is asked for again, however much it is used', async () => {
  answer = async () => sessionFor(ALICE, { endsInMs: 60_000 })
  await sessions.find(ALICE)
  now += 59_999
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
  now += 1
  expect(sessions.cached(ALICE)).toBeUndefined()
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  await expect(sessions.find(ALICE)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('activity is told in batches, once, with the last time', async () => {
  await sessions.find(ALICE)
  now += 5000
  await sessions.find(ALICE)
  await sessions.flush()
  await sessions.flush()
  expect(marked).toEqual([{ apiSessionIds: ['s-2222'], atMs: [T0 + 5000] }])
  expect((await sessions.find(ALICE)).storedActivityMs).toBe(T0 + 5000)
})

test('no batch has more than a thousand sessions', async () => {
  for (let i = 0; i < 1001; i++) {
    const token = `${String(i).padStart(8, '0')}-0000-4000-8000-000000000000`
    sessions.add(sessionFor(token, { id: `s${i}` }))
  }
  await sessions.flush()
  expect(marked.map(({ apiSessionIds }) => apiSessionIds.length)).toEqual([1000, 1])
})

test('a session that its owner does not know any more is forgotten', async () => {
  await sessions.find(ALICE)
  unknownIds = ['s-2222']
  await sessions.flush()
  await sessions.find(ALICE)
  expect(asked.length).toBe(2)
})

test('a session that is found is known to live up to what has been heard', async () => {
  answer = async () => sessionFor(ALICE, { position: at(10) })
  await sessions.find(ALICE)
  heard = at(12)
  expect(await sessions.find(ALICE)).toMatchObject({ position: at(12) })
  writePositions.note('identity', at(13)) // may have ended it: that it lives is not known any further
  expect(await sessions.find(ALICE)).toMatchObject({ position: at(10) })
})

test('a session whose end was heard of before its beginning is not remembered', async () => {
  sessions.drop('api-sessions s-2222')
  heard = at(12)
  sessions.add(sessionFor(ALICE, { position: at(11) }))
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  await expect(async () => sessions.find(ALICE)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('a session that has just begun is remembered', () => {
  sessions.add(sessionFor(ALICE, { position: at(10) }))
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
})
