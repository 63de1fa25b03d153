import { Fault, ownContext, type Position } from '@overlay/rpc'
import { beforeEach, expect, test } from 'vitest'
import { ALICE, sessionFor } from '../testing/fakes.js'
import { openSessions, type Sessions } from './sessions.js'
import { openWritePositions } from './write-positions.js'

const at = (number: number, timeline = 't1'): Position => ({ timeline, number })
const T0 = Date.UTC(2026, 0, 1)

let now: number
let trusted: boolean
let received: Position
let asked: string[]
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
      positions: () => ({ identity: received }),
      [Symbol.asyncDispose]: async () => undefined,
    }),
    log: { warn: () => undefined },
    context: () => ownContext(new AbortController().signal),
    now: () => now,
  })
})

test('a cached session is found without a call', async () => {
  await sessions.find(ALICE)
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
  expect(asked.length).toBe(1)
})

test('a malformed token is refused without a call', () => {
  expect(() => sessions.find('not-a-token')).toThrow(Fault)
  expect(asked).toEqual([])
})

test('a dropped session is loaded again', async () => {
  await sessions.find(ALICE)
  sessions.drop('api-sessions s-2222')
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  await expect(sessions.find(ALICE)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('so is a session whose identity has changed', async () => {
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

test('while the owner is silent no cached session is valid, and its silence is no refusal', async () => {
  await sessions.find(ALICE)
  trusted = false
  answer = () => Promise.reject(new Fault('UNAVAILABLE'))
  await expect(sessions.find(ALICE)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  trusted = true
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
})

test('a write through this gateway invalidates sessions loaded before it', async () => {
  await sessions.find(ALICE)
  writePositions.note('identity', at(11))
  await sessions.find(ALICE) // the change at 11 has not arrived yet and may have ended this session
  expect(asked.length).toBe(2)
  received = at(11)
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
})

test('a session loaded after the write is valid before the change arrives', async () => {
  writePositions.note('identity', at(11))
  answer = async () => sessionFor(ALICE, { position: at(11) })
  await sessions.find(ALICE)
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
})

test('a session idle for longer than its timeout is loaded again', async () => {
  await sessions.find(ALICE)
  now += 1800_000
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
  now += 1800_001
  await sessions.find(ALICE)
  expect(asked.length).toBe(2)
})

test('a session at the end of its lifetime is loaded again, whatever its use', async () => {
  answer = async () => sessionFor(ALICE, { endsInMs: 60_000 })
  await sessions.find(ALICE)
  now += 59_999
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
  now += 1
  expect(sessions.cached(ALICE)).toBeUndefined()
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  await expect(sessions.find(ALICE)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('activity is reported in batches, once, with the last time', async () => {
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

test('a session unknown to its owner is dropped', async () => {
  await sessions.find(ALICE)
  unknownIds = ['s-2222']
  await sessions.flush()
  await sessions.find(ALICE)
  expect(asked.length).toBe(2)
})

test('a cached session exists at the position of the changes received', async () => {
  answer = async () => sessionFor(ALICE, { position: at(10) })
  await sessions.find(ALICE)
  received = at(12)
  expect(await sessions.find(ALICE)).toMatchObject({ position: at(12) })
  writePositions.note('identity', at(13)) // may have ended it: loaded again
  expect(await sessions.find(ALICE)).toMatchObject({ position: at(10) })
})

test('a session whose end arrived before its creation is not cached', async () => {
  sessions.drop('api-sessions s-2222')
  received = at(12)
  sessions.add(sessionFor(ALICE, { position: at(11) }))
  answer = () => Promise.reject(new Fault('UNAUTHORIZED'))
  await expect(async () => sessions.find(ALICE)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('a new session is cached', () => {
  sessions.add(sessionFor(ALICE, { position: at(10) }))
  expect(sessions.find(ALICE)).not.toBeInstanceOf(Promise)
})
