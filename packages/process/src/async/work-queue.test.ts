import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { boundedQueue, fairQueue } from './work-queue.js'

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
  const abandoned = task('c', abort.signal)
  abort.abort(new Error('gone'))
  await expect(abandoned).rejects.toThrow('gone')
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

/** Tasks in a fair queue that runs one at a time, in the order in which they ran. */
function fairTasks(waiting = 4) {
  const run = fairQueue({ name: 'test', running: 1, waiting })
  const ran: string[] = []
  const refused: string[] = []
  let release: () => void = () => undefined
  const first = run({ source: 'first', name: '' }, () => new Promise<void>((resolve) => (release = resolve)))
  const all: Promise<void>[] = []
  return {
    ran,
    refused,
    /** `source/name`, with ! if it is familiar, and a number that tells tasks of one share apart. */
    add(task: string, signal?: AbortSignal) {
      const [source = '', name = ''] = task.replace(/\d+$/, '').split('/')
      const share = { source, name: name.replace('!', ''), isFamiliar: name.endsWith('!') }
      const started = run(share, async () => void ran.push(task), signal)
      all.push(started.catch(() => void refused.push(task)))
    },
    async end() {
      await new Promise(setImmediate)
      release()
      await first
      await Promise.all(all)
    },
  }
}

test('sources take turns, however many tasks of another one wait', async () => {
  const { add, end, ran } = fairTasks()
  for (const task of ['a/x1', 'a/x2', 'a/x3', 'b/x1']) add(task)
  await end()
  expect(ran).toEqual(['a/x1', 'b/x1', 'a/x2', 'a/x3'])
})

test('names of one source take turns', async () => {
  const { add, end, ran } = fairTasks()
  for (const task of ['a/x1', 'a/x2', 'a/x3', 'a/y1']) add(task)
  await end()
  expect(ran).toEqual(['a/x1', 'a/y1', 'a/x2', 'a/x3'])
})

test('a full queue refuses the newest task of the source with most for one of a source with fewer', async () => {
  const { add, end, ran, refused } = fairTasks()
  for (const task of ['a/x1', 'a/x2', 'a/x3', 'a/y1', 'b/x1', 'c/x1']) add(task)
  await end()
  expect(refused).toEqual(['a/x3', 'a/x2'])
  expect(ran).toEqual(['a/x1', 'b/x1', 'c/x1', 'a/y1'])
})

test('a full queue of one source refuses the newest task of its name with most for another name', async () => {
  const { add, end, ran, refused } = fairTasks()
  for (const task of ['a/x1', 'a/x2', 'a/x3', 'a/x4', 'a/x5', 'a/y1']) add(task)
  await end()
  expect(refused).toEqual(['a/x5', 'a/x4'])
  expect(ran).toEqual(['a/x1', 'a/y1', 'a/x2', 'a/x3'])
})

test('a full queue displaces no task for a source that would have as many', async () => {
  const { add, end, refused } = fairTasks()
  for (const task of ['a/x1', 'a/x2', 'b/x1', 'b/x2', 'b/x3']) add(task)
  await end()
  expect(refused).toEqual(['b/x3'])
})

test('familiar shares take turns with all others, however many those are', async () => {
  const { add, end, ran } = fairTasks()
  for (const task of ['a/x1', 'b/x1', 'c/y!1', 'c/y!2']) add(task)
  await end()
  expect(ran).toEqual(['c/y!1', 'a/x1', 'c/y!2', 'b/x1'])
})

test('a queue that other sources fill with one task each makes room for familiar shares, up to half', async () => {
  const { add, end, refused } = fairTasks()
  for (const task of ['a/x1', 'b/x1', 'c/x1', 'd/x1', 'e/y!1', 'f/y!1', 'g/y!1', 'h/x1']) add(task)
  await end()
  expect(refused.toSorted()).toEqual(['a/x1', 'b/x1', 'g/y!1', 'h/x1'])
})

test('a queue that familiar shares fill makes room for others, up to half', async () => {
  const { add, end, refused } = fairTasks()
  for (const task of ['a/x!1', 'a/x!2', 'a/x!3', 'a/x!4', 'b/y1', 'c/y1', 'd/y1']) add(task)
  await end()
  expect(refused.toSorted()).toEqual(['a/x!3', 'a/x!4', 'd/y1'])
})

test('fifty sources that fill the queue do not keep another one out, and it waits one turn of each', async () => {
  const { add, end, ran, refused } = fairTasks(100)
  for (let task = 1; task <= 4; task++) for (let s = 0; s < 50; s++) add(`attacker ${s}/x${task}`)
  add('owner/x1')
  await end()
  expect(refused).not.toContain('owner/x1')
  expect(ran.indexOf('owner/x1')).toBeLessThanOrEqual(50)
})

test('a fair task whose caller goes while it waits never runs and leaves its place', async () => {
  const { add, end, ran } = fairTasks()
  const abort = new AbortController()
  add('a/x1', abort.signal)
  add('a/x2')
  abort.abort(new Error('gone'))
  for (const task of ['b/x1', 'c/x1', 'd/x1']) add(task)
  await end()
  expect(ran).toEqual(['a/x2', 'b/x1', 'c/x1', 'd/x1'])
})
