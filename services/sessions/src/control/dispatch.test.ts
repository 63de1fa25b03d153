import type { Channel, Message } from '@overlay/channel'
import { openLog } from '@overlay/platform/process'
import { expect, test } from 'vitest'
import { openDispatch } from './dispatch.js'
import type { Handler } from './handlers.js'
import type { RouterChannel } from './router-channel.js'

const TYPE = 1000
const UNUSED = 9999
const log = openLog('sessions', { level: 'silent', format: 'json' })

const routerOf = (closed = new AbortController().signal): RouterChannel => ({
  ...{ routerId: 'r1', fingerprint: '', connectedAt: new Date(), isReconnection: false },
  linkListeners: Buffer.alloc(0),
  channel: { closed } as Channel,
})
const messageOf = (sequence: number, type = TYPE, bytes = 0): Message => ({
  ...{ type, sequence, headers: new Map() },
  body: Buffer.alloc(bytes),
})

/** Handles messages by noting their sequence. */
function startDispatch(more: Partial<Handler> = {}) {
  const handled: number[] = []
  const note: Handler = {
    type: TYPE,
    prepare:
      ({ sequence }) =>
      () =>
        void handled.push(sequence),
    ...more,
  }
  return { handled, dispatch: openDispatch([{ handlers: [note] }], log) }
}

test.each([TYPE, UNUSED])(
  'many messages of type %i wait for each other, and another router does not',
  async (type) => {
    const { handled, dispatch } = startDispatch()
    const [many, other] = [routerOf(), routerOf()]
    const waiting = Array.from({ length: 2000 }, (_, sequence) => dispatch(messageOf(sequence, type), many))
    expect(waiting[0]).toBeUndefined()
    const last = dispatch(messageOf(2000), many)
    expect(last).toBeInstanceOf(Promise)
    expect(dispatch(messageOf(-1), other)).toBeUndefined()
    await last
    const expected = Array.from({ length: 2001 }, (_, n) => n).filter((n) => type === TYPE || n === 2000)
    expect(handled.filter((n) => n !== -1)).toEqual(expected)
    expect(handled.indexOf(-1)).toBeLessThan(expected.length - 1 || 1)
  },
)

test('messages that wait when their router leaves are not handled', async () => {
  const { handled, dispatch } = startDispatch()
  const closing = new AbortController()
  const router = routerOf(closing.signal)
  const waiting = Array.from({ length: 1000 }, (_, sequence) => dispatch(messageOf(sequence), router))
  const before = handled.length
  closing.abort()
  await Promise.all(waiting)
  expect(handled).toHaveLength(before)
})

test('a message that is too large is dropped, and the channel stays', async () => {
  const { handled, dispatch } = startDispatch()
  expect(dispatch(messageOf(1, TYPE, 256 * 1024 + 1), routerOf())).toBeUndefined()
  await dispatch(messageOf(2, TYPE, 256 * 1024), routerOf())
  expect(handled).toEqual([2])
  const list = startDispatch({ mostBytes: 1024 * 1024 })
  await list.dispatch(messageOf(3, TYPE, 1024 * 1024), routerOf())
  expect(list.handled).toEqual([3])
})
