import type { Channel } from '@overlay/channel'
import { openLog } from '@overlay/process'
import { Fault } from '@overlay/rpc'
import { expect, test, vi } from 'vitest'
import type { RouterChannel } from '../channel/router-channel.js'
import { openReportQueue, type Persist } from './report-queue.js'

const log = openLog('sessions', { level: 'silent', format: 'json' })

/** A queue for at most ten links, and a database that is away until it is back. */
function startQueue() {
  const closing = new AbortController()
  const channel: Partial<Channel> = { closed: closing.signal }
  const database = { isAway: true }
  const stored: string[] = []
  const store = async (name: string) => {
    if (database.isAway) throw new Fault('UNAVAILABLE')
    stored.push(name)
  }
  return {
    queue: openReportQueue({ routerId: 'a', channel } as RouterChannel, 10, log),
    task: (name: string) => (persist: Persist) => persist(() => store(name)),
    database,
    stored,
    close: () => closing.abort(),
  }
}

test('while the database is away, messages are let go as long as few links wait, and stored in order later', async () => {
  const { queue, task, database, stored } = startQueue()
  await Promise.all([queue(4, task('1')), queue(4, task('2'))])
  await queue(2, task('3'))
  const last = queue(1, task('4'))
  const isOver = vi.fn()
  void last.then(isOver)
  await new Promise(setImmediate)
  expect(isOver).not.toHaveBeenCalled()
  expect(stored).toEqual([])
  database.isAway = false
  await last
  expect(stored).toEqual(['1', '2', '3', '4'])
  await queue(10, task('5'))
  expect(stored).toHaveLength(5)
})

test('nothing is repeated once the channel is closed', async () => {
  const { queue, task, database, stored, close } = startQueue()
  await queue(1, task('1'))
  const held = queue(10, task('2'))
  close()
  await expect(held).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  database.isAway = false
  expect(stored).toEqual([])
})

test('a failure of the task fails its message, and is not repeated', async () => {
  const { queue, database, task, stored } = startQueue()
  database.isAway = false
  const failing = vi.fn(() => Promise.reject(new Error('bad')))
  await expect(queue(1, (persist) => persist(failing))).rejects.toThrow('bad')
  expect(failing).toHaveBeenCalledTimes(1)
  await queue(1, task('1'))
  expect(stored).toEqual(['1'])
})

test('a message that arrives while the database answers waits until it is stored', async () => {
  const { queue } = startQueue()
  const { promise, resolve } = Promise.withResolvers<void>()
  const order: string[] = []
  const first = queue(1, () => promise.then(() => void order.push('stored')))
  const answered = first.then(() => order.push('answered'))
  resolve()
  await answered
  expect(order).toEqual(['stored', 'answered'])
})
