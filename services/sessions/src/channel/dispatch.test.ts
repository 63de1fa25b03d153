import {
  ApiSessionHeartbeat,
  type Channel,
  contentType,
  ctrlType,
  edgeType,
  type Message,
  TooManyFields,
} from '@overlay/channel'
import { metrics, openLog } from '@overlay/process'
import { expect, test } from 'vitest'
import { NO_FEATURES } from '../domain/router-features.js'
import { LIST_BYTES, MOST_READS } from '../limits.js'
import { openDispatch } from './dispatch.js'
import { type Handler, onMessage } from './handlers.js'
import type { RouterChannel } from './router-channel.js'

const TYPE = 1000
const UNUSED = 9999
const log = openLog('sessions', { level: 'silent', format: 'json' })

const routerOf = (closed = new AbortController().signal, routerId = 'r1'): RouterChannel => ({
  ...{ routerId, fingerprint: '', connectedAt: new Date(), isReconnection: false, features: NO_FEATURES },
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

test.each([TYPE, UNUSED, contentType.ping, contentType.heartbeat])(
  'many messages of type %i wait for each other, and another router does not',
  async (type) => {
    const { handled, dispatch } = startDispatch()
    const [many, other] = [routerOf(), routerOf(undefined, 'r2')]
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

test('a router that connects again goes on with what it has spent', async () => {
  const { dispatch } = startDispatch({ mostBytes: 4 * 1024 * 1024 })
  void dispatch(messageOf(1, TYPE, 4 * 1024 * 1024), routerOf())
  expect(dispatch(messageOf(2), routerOf())).toBeInstanceOf(Promise)
})

test('messages that are too large wait for each other', () => {
  const { dispatch } = startDispatch()
  expect(dispatch(messageOf(1, TYPE, 4 * 1024 * 1024), routerOf())).toBeUndefined()
  expect(dispatch(messageOf(2, TYPE, 4 * 1024 * 1024), routerOf())).toBeInstanceOf(Promise)
})

test('a message of too many fields costs what was decoded of it', () => {
  const { prepare } = onMessage(TYPE, ApiSessionHeartbeat, () => undefined)
  const body = Buffer.alloc(2 * MOST_READS, Buffer.of(0x0a, 0))
  let spent = 0
  const decode = () =>
    prepare({ ...messageOf(1), body }, routerOf(), (units) => {
      spent += units
    })
  expect(decode).toThrow(TooManyFields)
  expect(spent).toBeGreaterThan(MOST_READS / 10)
})

test('of failures that one router repeats, a limited number is logged', async () => {
  const lines: unknown[] = []
  const note = (facts: object): unknown => lines.push(facts)
  const fails: Handler = {
    type: TYPE,
    prepare: () => () => {
      throw new Error('bad')
    },
  }
  const dispatch = openDispatch([{ handlers: [fails] }], { ...log, error: note } as typeof log)
  for (let i = 0; i < 400; i++) void dispatch(messageOf(i), routerOf())
  void dispatch(messageOf(1), routerOf(undefined, 'r2'))
  expect(lines).toHaveLength(61)
  expect(lines[60]).toMatchObject({ routerId: 'r2', type: TYPE })
})

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

test('a message whose body the channel has left out is dropped, and costs all of its bytes', async () => {
  const { handled, dispatch } = startDispatch({ mostBytes: LIST_BYTES })
  const router = routerOf()
  const counted = async () => {
    const { values } = await metrics.routerMessages.get()
    return (
      values.find(({ labels }) => labels.type === String(TYPE) && labels.result === 'oversized')?.value ?? 0
    )
  }
  const before = await counted()
  expect(dispatch({ ...messageOf(1), skippedBytes: LIST_BYTES + 1 }, router)).toBeUndefined()
  expect(await counted()).toBe(before + 1)
  const next = dispatch(messageOf(2), router)
  expect(next).toBeInstanceOf(Promise)
  await next
  expect(handled).toEqual([2])
})

test.each([
  [edgeType.createApiSession, { ...NO_FEATURES, isGrouped: true }, NO_FEATURES],
  [ctrlType.updateRouterInterfaces, NO_FEATURES, { ...NO_FEATURES, hasDataModel: true }],
])(
  'a message of type %i is dropped before it is decoded if such routers do not send it',
  (type, other, own) => {
    const { handled, dispatch } = startDispatch({ type })
    void dispatch(messageOf(1, type), { ...routerOf(), features: other })
    expect(handled).toEqual([])
    void dispatch(messageOf(2, type), { ...routerOf(), features: own })
    expect(handled).toEqual([2])
  },
)
