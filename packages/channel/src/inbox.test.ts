import { expect, test } from 'vitest'
import { openInbox } from './inbox.js'

test('bodies that were left out fill the inbox as others do', () => {
  const inbox = openInbox({
    ...{ onMessage: () => new Promise(() => {}), onRoom: () => {}, onFailure: () => {} },
    ...{ maxPending: 64, maxWaiting: 1024, maxBytes: 10_000 },
  })
  const message = { type: 1, sequence: 1, headers: new Map(), body: Buffer.alloc(0), skippedBytes: 20_000 }
  inbox.push(message)
  expect(inbox.isFull()).toBe(false)
  inbox.push(message)
  expect(inbox.isFull()).toBe(true)
})
