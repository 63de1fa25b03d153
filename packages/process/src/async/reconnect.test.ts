import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { reconnect, withWatchdog } from './reconnect.js'

const pauses = { firstMs: 1, longestMs: 2 }

test('connects at once after a return, and after a pause when a connection fails', async () => {
  const stop = new AbortController()
  const steps: string[] = []
  const outcomes = ['return', 'throw', 'throw', 'works', 'throw']
  await reconnect({
    ...pauses,
    signal: stop.signal,
    async connect({ works }) {
      const outcome = outcomes.shift() ?? 'stop'
      steps.push(outcome)
      if (outcome === 'stop') stop.abort()
      if (outcome === 'works') works()
      if (outcome !== 'return') throw new Error(outcome)
    },
    onFailure: (err) => void steps.push(`${(err as Error).message} failed`),
    onOutage: () => undefined,
  })
  expect(steps).toEqual([
    'return',
    'throw',
    'throw failed',
    'throw',
    'throw failed',
    'works',
    'works failed',
    'throw',
    'throw failed',
    'stop',
  ])
})

test('a pause ends when the signal is aborted', async () => {
  const stop = new AbortController()
  const failed = Promise.withResolvers<void>()
  const running = reconnect({
    firstMs: 60_000,
    longestMs: 60_000,
    signal: stop.signal,
    connect: () => Promise.reject(new Error('away')),
    onFailure: () => failed.resolve(),
    onOutage: () => undefined,
  })
  await failed.promise
  stop.abort()
  await running
})

test('a stream that falls silent fails, and its signal is aborted', async () => {
  const read: number[] = []
  const reading = async (): Promise<void> => {
    const stream = withWatchdog(10, async function* (signal) {
      yield 1
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    })
    for await (const message of stream) read.push(message)
  }
  await expect(reading()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(read).toEqual([1])
})

test('a stream that ends leaves no listeners behind', async () => {
  const stop = new AbortController()
  async function* open() {
    yield 1
  }
  for await (const _ of withWatchdog(60_000, open, stop.signal)) {
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1)
  }
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0)
})
