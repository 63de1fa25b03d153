import { Fault, ownContext } from '@overlay/rpc'
import { expect, test } from 'vitest'
import type { ChangeLog } from './change-log.js'
import { waitForFollowers } from './wait-for-followers.js'

const written = { id: 'one', position: { timeline: 't', number: 7 } }
const context = ownContext(new AbortController().signal)
const warnings: unknown[] = []
const changeLog = {
  db: { schema: 'identity' },
  log: { warn: (about: unknown) => void warnings.push(about) },
} as unknown as ChangeLog
const follower = (schema: string, reach: () => Promise<object>) => ({
  source: { schema },
  changes: { reach, head: async () => ({ timeline: schema, number: 1 }) },
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
  const wait = waitForFollowers(
    changeLog,
    ['policy', 'sessions'].map((schema) => ({
      source: { schema },
      changes: {
        reach: async (request) => ({ reached: reached.push([schema, request]) }),
        head: async () => ({ timeline: schema, number: 9 }),
      },
    })),
  )
  await wait(written, context, [['policy', 'sessions']])
  expect(reached).toEqual([
    ['policy', { schema: 'identity', position: written.position }],
    ['sessions', { schema: 'policy', position: { timeline: 'policy', number: 9 } }],
  ])
})
