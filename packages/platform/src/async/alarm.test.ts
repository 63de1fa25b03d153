import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { openAlarm } from './alarm.js'

test('a ring wakes all sleepers, and an abort the one whose signal it is', async () => {
  const alarm = openAlarm()
  const [one, other] = [new AbortController(), new AbortController()]
  const sleeping = [alarm.sleep(60_000, one.signal), alarm.sleep(60_000, other.signal)]
  one.abort()
  await sleeping[0]
  alarm.ring()
  await sleeping[1]
  await alarm.sleep(60_000, one.signal)
  expect(getEventListeners(other.signal, 'abort')).toHaveLength(0)
})

test('a sleep ends by itself', async () => {
  await openAlarm().sleep(1, new AbortController().signal)
})
