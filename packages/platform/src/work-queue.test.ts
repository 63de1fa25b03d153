import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { boundedQueue } from './work-queue.js'

/** Tasks that run until they are ended, in a queue of two with room for two more. */
function tasks() {
  const run = boundedQueue({ name: 'test', running: 2, waiting: 2 })
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const task = (name: string, signal?: AbortSignal): Promise<string> =>
    run(async () => {
      started.push(name)
      await new Promise<void>((resolve) => ends.set(name, resolve))
      return name
    }, signal)
  const end = (name: string) => ends.get(name)?.()
  return { run, started, task, end }
}

test('so many run at once, the others start in the order in which they came', async () => {
  const { started, task, end } = tasks()
  const all = ['a', 'b', 'c', 'd'].map((name) => task(name))
  await Promise.resolve()
  await Promise.resolve()
  expect(started).toEqual(['a', 'b'])
  end('b')
  await all[1]
  await new Promise(setImmediate)
  expect(started).toEqual(['a', 'b', 'c'])
  end('a')
  end('c')
  await Promise.all([all[0], all[2]])
  await new Promise(setImmediate)
  end('d')
  expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd'])
})

test('a full queue refuses, and has room again when a task has ended', async () => {
  const { task, end } = tasks()
  const all = ['a', 'b', 'c', 'd'].map((name) => task(name))
  await expect(task('e')).rejects.toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS' })
  await new Promise(setImmediate)
  end('a')
  await all[0]
  const f = task('f')
  for (const name of ['b', 'c', 'd', 'f']) {
    await new Promise(setImmediate)
    end(name)
  }
  expect(await f).toBe('f')
})

test('a task that fails gives its place to the next', async () => {
  const { run } = tasks()
  const failing = () => Promise.reject(new Error('failed'))
  const outcomes = await Promise.allSettled([
    run(failing),
    run(failing),
    run(failing),
    run(async () => 'ran'),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'fulfilled'])
})

test('a task whose caller goes while it waits never runs and leaves its place', async () => {
  const { started, task, end } = tasks()
  const abort = new AbortController()
  const running = [task('a'), task('b')]
  const given = task('c', abort.signal)
  abort.abort(new Error('gone'))
  await expect(given).rejects.toThrow('gone')
  const others = [task('d'), task('e')]
  for (const name of ['a', 'b', 'd', 'e']) {
    await new Promise(setImmediate)
    end(name)
  }
  await Promise.all([...running, ...others])
  expect(started).toEqual(['a', 'b', 'd', 'e'])
})

test('a task that ran leaves nothing on the signal of its caller', async () => {
  const { task, end } = tasks()
  const { signal } = new AbortController()
  const all = ['a', 'b', 'c'].map((name) => task(name, signal))
  for (const name of ['a', 'b', 'c']) {
    await new Promise(setImmediate)
    end(name)
  }
  await Promise.all(all)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})
