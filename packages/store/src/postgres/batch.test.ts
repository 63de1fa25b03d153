import { Fault } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { batch } from './batch.js'

/** Records its batches; each runs until `release` is called. */
function recorder(limit = 200) {
  const batches: (readonly number[])[] = []
  const open: (() => void)[] = []
  const add = batch(
    async (entries: readonly number[]) => {
      batches.push(entries)
      await new Promise<void>((resolve) => open.push(resolve))
      if (entries.includes(13)) throw new Error('13 is refused')
      return entries.map((n) => n * 10)
    },
    { limit },
  )
  const release = async () => {
    while (open.length === 0) await new Promise(setImmediate)
    open.shift()?.()
  }
  return { add, batches, release }
}

test('entries of one turn go together, and each gets its own result', async () => {
  const { add, batches, release } = recorder()
  const results = Promise.all([1, 2, 3].map(add))
  await release()
  expect(await results).toEqual([10, 20, 30])
  expect(batches).toEqual([[1, 2, 3]])
})

test('what arrives while a call is under way goes in the next one, in order', async () => {
  const { add, batches, release } = recorder()
  const first = add(1)
  while (batches.length === 0) await new Promise(setImmediate)
  const rest = Promise.all([2, 3, 4].map(add))
  expect(batches).toEqual([[1]])
  await release()
  await release()
  expect([await first, ...(await rest)]).toEqual([10, 20, 30, 40])
  expect(batches).toEqual([[1], [2, 3, 4]])
})

test('a call takes no more than the limit', async () => {
  const { add, batches, release } = recorder(2)
  const results = Promise.all([1, 2, 3].map(add))
  await release()
  await release()
  await results
  expect(batches).toEqual([[1, 2], [3]])
})

test('the entries of a call are no larger together than the limit, and a larger one goes alone', async () => {
  const batches: (readonly number[])[] = []
  const add = batch(
    async (entries: readonly number[]) => {
      batches.push(entries)
      return entries
    },
    { limit: 3, sizeLimit: 10, sizeOf: (n) => n },
  )
  const entries = [4, 6, 1, 20, 10, 1, 1, 1, 1]
  expect(await Promise.all(entries.map(add))).toEqual(entries)
  expect(batches).toEqual([[4, 6], [1], [20], [10], [1, 1, 1], [1]])
})

test('a bad entry fails alone', async () => {
  const { add, batches, release } = recorder()
  const results = Promise.allSettled([1, 13, 3].map(add))
  for (let call = 0; call < 4; call++) await release()
  expect(await results).toMatchObject([{ value: 10 }, { reason: new Error('13 is refused') }, { value: 30 }])
  expect(batches).toEqual([[1, 13, 3], [1], [13], [3]])
})

test('a call that answers for fewer entries than it got is a failure, not a missing result', async () => {
  const add = batch(async () => [])
  await expect(add(1)).rejects.toThrow('0 results for 1')
})

test('goes on after a failure', async () => {
  const { add, release } = recorder()
  const bad = expect(add(13)).rejects.toThrow()
  await release()
  await bad
  const good = add(2)
  await release()
  expect(await good).toBe(20)
})

test.each(['UNAVAILABLE', 'TIMEOUT'] as const)('a batch that is answered %s fails at once', async (code) => {
  let runs = 0
  const add = batch(async (): Promise<never[]> => {
    runs++
    throw new Fault(code)
  })
  const results = await Promise.allSettled([1, 2, 3].map(add))
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(runs).toBe(1)
})

test('an entry that still waits at its deadline is refused, and the others are not', async () => {
  const add = batch(async (entries: readonly number[]) => entries, {
    deadlineOf: (n) => (n === 0 ? undefined : new Date(Date.now() + n * 60_000)),
  })
  const results = await Promise.allSettled([0, -1, 1].map(add))
  expect(results).toMatchObject([{ value: 0 }, { reason: { code: 'TIMEOUT' } }, { value: 1 }])
})

test('an entry whose deadline passes while others are repeated is refused, and not run', async () => {
  const ran: number[] = []
  let deadline: Date | undefined
  const add = batch(
    async (entries: readonly number[]) => {
      if (entries.length > 1) throw new Error('bad batch')
      ran.push(...entries)
      deadline = new Date(Date.now() - 1)
      return entries
    },
    { deadlineOf: (n) => (n === 2 ? deadline : undefined) },
  )
  const results = await Promise.allSettled([1, 2, 3].map(add))
  expect(results).toMatchObject([{ value: 1 }, { reason: { code: 'TIMEOUT' } }, { value: 3 }])
  expect(ran).toEqual([1, 3])
})
