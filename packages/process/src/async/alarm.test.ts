import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { openAlarm } from './alarm.js'

test('a ring wakes all sleepers, and an abort the one whose signal it is', async () => {
  const alarm = openAlarm()
  const [one, other] = [new AbortController(), new AbortController()]
  const sleeping = [alarm.sleep(one.signal, 60_000), alarm.sleep(other.signal)]
  one.abort()
  await sleeping[0]
  alarm.ring()
  await sleeping[1]
  await alarm.sleep(one.signal)
  expect(getEventListeners(other.signal, 'abort')).toHaveLength(0)
})

test('a sleep ends by itself', async () => {
  await openAlarm().sleep(new AbortController().signal, 1)
})
