import { expect, test } from 'vitest'
import { fullQueuesIn, outstandingIn } from './read-progress.js'

const identity = (position: number) => ({
  name: `identity-${position}`,
  text: `overlay_change_log_position{schema="identity"} ${position}\noverlay_follow_position{schema="pki"} 4`,
})
const follower = (name: string, position: number) => ({
  name,
  text: `overlay_follow_position{schema="identity"} ${position}`,
})

test('a process that lacks changes of the newest replica of their owner is named', () => {
  const processes = [identity(9), identity(12), follower('policy', 12), follower('sessions', 9)]
  expect(outstandingIn(processes)).toEqual([{ process: 'sessions', schema: 'identity', changes: 3 }])
})

test('a queue is named for ten minutes after it was full', () => {
  const name = 'identity'
  const text = `overlay_queue_refused_timestamp_seconds{queue="passwords"} 1000.5
overlay_queue_refused_timestamp_seconds{queue="work"} 300`
  expect(fullQueuesIn([{ name, text }], 1_000_000)).toEqual([
    { process: name, queue: 'passwords', lastRefusedAt: '1970-01-01T00:16:40.500Z' },
  ])
  expect(fullQueuesIn([{ name, text }], 1_700_000)).toEqual([])
})
