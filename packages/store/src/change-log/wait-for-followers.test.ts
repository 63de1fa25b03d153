import { type Context, Fault, ownContext } from '@overlay/rpc'
import { afterEach, expect, test, vi } from 'vitest'
import type { ChangeLog } from './change-log.js'
import { type RemoteFollower, waitForFollowers } from './wait-for-followers.js'

afterEach(() => void vi.useRealTimers())

const written = { id: 'one', position: { timeline: 't', number: 7 } }
const context = ownContext(new AbortController().signal)
const warnings: unknown[] = []
const heads = { pki: { timeline: 'pki', number: 1 }, policy: { timeline: 'policy', number: 1 } }
let headReads = 0
const changeLog = {
  db: {
    schema: 'identity',
    query: async () => {
      headReads += 1
      return { rows: [{ heads: JSON.stringify(heads) }] }
    },
  },
  log: { warn: (about: unknown) => void warnings.push(about) },
} as unknown as ChangeLog
const follower = (schema: string, reach: RemoteFollower['changes']['reach']) => ({
  source: { schema },
  changes: { reach },
})
const following = (reach: () => Promise<object>) =>
  waitForFollowers(changeLog, [follower('policy', reach)])(written, context)

test('a committed write is answered, whether or not its followers have applied it', async () => {
  expect(await following(async () => ({}))).toBe(written)
  for (const code of ['UNAVAILABLE', 'TIMEOUT'] as const)
    expect(await following(() => Promise.reject(new Fault(code)))).toBe(written)
  expect(warnings).toEqual([])
})

test('a follower that fails otherwise is no failure of the write, but a warning', async () => {
  for (const code of ['UNHANDLED', 'SERVER_TOO_MANY_REQUESTS'] as const)
    expect(await following(() => Promise.reject(new Fault(code)))).toBe(written)
  expect(warnings).toHaveLength(2)
})

test('a write may wait for the followers whose effects its answer promises, and for no others', async () => {
  const reached: string[] = []
  const wait = waitForFollowers(
    changeLog,
    ['pki', 'policy'].map((schema) => follower(schema, async () => ({ reached: reached.push(schema) }))),
  )
  expect(await wait(written, context, ['policy'])).toBe(written)
  expect(reached).toEqual(['policy'])
  await wait(written, context)
  expect(reached).toEqual(['policy', 'pki', 'policy'])
})

test('a write may wait for what a follower of a follower does with it', async () => {
  const reached: unknown[] = []
  const before = headReads
  const wait = waitForFollowers(
    changeLog,
    ['policy', 'sessions'].map((schema) => ({
      source: { schema },
      changes: {
        reach: async (request) => ({ reached: reached.push([schema, request, headReads - before]) }),
      },
    })),
  )
  await wait(written, context, [['policy', 'sessions']])
  expect(reached).toEqual([
    ['policy', { schema: 'identity', position: written.position }, 0],
    ['sessions', { schema: 'policy', position: heads.policy }, 1],
  ])
})

test('a write may tell the positions of its effects', async () => {
  const wait = waitForFollowers(
    changeLog,
    ['pki', 'policy', 'sessions'].map((schema) =>
      follower(schema, async () => {
        if (schema === 'sessions') throw new Fault('TIMEOUT')
        return {}
      }),
    ),
  )
  const { id, effects } = await wait(written, context, ['pki', ['policy', 'sessions']], {
    effects: ['pki', 'policy'],
  })
  expect(id).toBe(written.id)
  expect(effects).toEqual(heads)
})

/** A follower that may be away, and how long each write has waited for it. */
function openAbsent() {
  vi.useFakeTimers({ toFake: ['Date'] })
  const waitedMs: number[] = []
  let failure: Fault | undefined
  const reach = async (_request: object, { deadline }: Context) => {
    waitedMs.push((deadline?.getTime() ?? Infinity) - Date.now())
    if (failure) throw failure
    return {}
  }
  const wait = waitForFollowers(changeLog, [
    follower('sessions', reach),
    follower('policy', async () => ({})),
  ])
  return {
    waitedMs,
    wait: () => wait(written, context),
    fail: (next: Fault | undefined) => {
      failure = next
    },
  }
}

test('of the writes during an outage of a follower, one in half a minute waits for it as long as usual', async () => {
  const { waitedMs, wait, fail } = openAbsent()
  fail(new Fault('TIMEOUT'))
  for (const secondsLater of [0, 1, 28, 2, 1]) {
    vi.setSystemTime(Date.now() + secondsLater * 1000)
    await wait()
  }
  expect(waitedMs).toEqual([5000, 100, 100, 5000, 100])
})

test('a follower that has answered again is waited for as before', async () => {
  const { waitedMs, wait, fail } = openAbsent()
  fail(new Fault('UNAVAILABLE'))
  await wait()
  fail(undefined)
  await wait()
  await wait()
  expect(waitedMs).toEqual([5000, 100, 5000])
})

test('a wait that fails otherwise says nothing about the next one', async () => {
  const { waitedMs, wait, fail } = openAbsent()
  fail(new Fault('UNHANDLED'))
  await wait()
  await wait()
  expect(waitedMs).toEqual([5000, 5000])
})
