import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { testBus } from '@overlay/launcher/testing'
import { type Bus, openBus } from '@overlay/store/change-log'
import pino from 'pino'
import { expect, test, vi } from 'vitest'

const log = pino({ enabled: false })

/** What arrives on a subject, in order. */
function received(bus: Bus, subject: string) {
  const messages: unknown[] = []
  const subscription = bus.subscribe(subject, (message) => messages.push(message))
  return { messages, [Symbol.dispose]: () => subscription[Symbol.dispose]() }
}
const until = (condition: () => void) => vi.waitFor(condition, { timeout: 30_000, interval: 10 })

test('a message reaches the subscribers of its subject, in other processes and in the own one', async () => {
  await using broker = await testBus()
  await using a = await openBus(broker.url, log)
  await using b = await openBus(broker.url, log)
  using here = received(a, 'overlay.policy.>')
  using there = received(b, 'overlay.*.head')
  using other = received(b, 'overlay.identity.head')
  await until(() => {
    a.publish('overlay.policy.head', { number: 1 })
    expect(there.messages).toContainEqual({ number: 1 })
    expect(here.messages).toContainEqual({ number: 1 })
  })
  expect(other.messages).toEqual([])
})

test('a subscription that was disposed gets nothing more', async () => {
  await using broker = await testBus()
  await using bus = await openBus(broker.url, log)
  const first = received(bus, 'x')
  using second = received(bus, 'x')
  first[Symbol.dispose]()
  bus.publish('x', { n: 1 })
  await until(() => expect(second.messages).toEqual([{ n: 1 }]))
  expect(first.messages).toEqual([])
})

test('without a server it opens all the same, drops what is published, and connects when there is one', async () => {
  await using broker = await testBus()
  await broker.stop()
  await using bus = await openBus(broker.url, log)
  using inbox = received(bus, 'x')
  const changes: boolean[] = []
  using _listener = bus.onChange((connected) => changes.push(connected))
  expect(bus.connected()).toBe(false)
  bus.publish('x', { n: 1 })

  await broker.start()
  await until(() => expect(bus.connected()).toBe(true))
  bus.publish('x', { n: 2 })
  await until(() => expect(inbox.messages).toEqual([{ n: 2 }]))
  expect(changes).toEqual([true])
})

test('subscriptions survive a server that goes and comes back', async () => {
  await using broker = await testBus()
  await using bus = await openBus(broker.url, log)
  using inbox = received(bus, 'x')
  const changes: boolean[] = []
  using _listener = bus.onChange((connected) => changes.push(connected))

  await broker.stop()
  await until(() => expect(bus.connected()).toBe(false))
  bus.publish('x', { n: 1 })
  await broker.start()
  await until(() => expect(bus.connected()).toBe(true))
  bus.publish('x', { n: 2 })
  await until(() => expect(inbox.messages).toEqual([{ n: 2 }]))
  expect(changes).toEqual([false, true])
})

test('a server that hangs counts as lost; one connection at a time is tried until it answers again', async () => {
  await using broker = await testBus()
  await using path = await openPath(broker.url)
  await using bus = await openBus(path.url, log)
  using inbox = received(bus, 'x')
  path.hang(true)
  await until(() => expect(bus.connected()).toBe(false))
  await until(() => expect(path.accepted()).toBeGreaterThan(3))
  expect(path.open()).toBeLessThan(3)
  path.hang(false)
  await until(() => expect(bus.connected()).toBe(true))
  bus.publish('x', { n: 1 })
  await until(() => expect(inbox.messages).toEqual([{ n: 1 }]))
})

test('a handler that fails is logged and called again', async () => {
  await using broker = await testBus()
  const lines: string[] = []
  await using bus = await openBus(broker.url, pino({}, { write: (line) => void lines.push(line) }))
  let calls = 0
  using _failing = bus.subscribe('x', () => {
    calls++
    throw new Error('handler is broken')
  })
  bus.publish('x', {})
  bus.publish('x', {})
  await until(() => expect(calls).toBe(2))
  expect(lines.join()).toContain('handler is broken')
})

test('closes while there is no server', async () => {
  await using broker = await testBus()
  await broker.stop()
  const bus = await openBus(broker.url, log)
  await bus[Symbol.asyncDispose]()
})

test('closes when its server hangs', async () => {
  await using broker = await testBus()
  await using path = await openPath(broker.url)
  const bus = await openBus(path.url, log)
  path.hang(true)
  await bus[Symbol.asyncDispose]()
})

/** Forwards connections to the server at `url`, or accepts them and keeps silent. */
async function openPath(url: string) {
  const { username, password, port, hostname } = new URL(url)
  const sockets = new Set<Socket>()
  const forwarded = new Set<Socket>()
  let accepted = 0
  let hangs = false
  const server = createServer((socket) => {
    accepted += 1
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)))
    if (hangs) return void socket.resume()
    const upstream = connect(Number(port), hostname).on('error', () => undefined)
    forwarded.add(socket).add(upstream)
    socket.pipe(upstream).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `nats://${username}:${password}@127.0.0.1:${(server.address() as AddressInfo).port}`,
    accepted: () => accepted,
    open: () => sockets.size,
    hang(now: boolean) {
      hangs = now
      for (const socket of forwarded) socket.unpipe().resume()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of [...sockets, ...forwarded]) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
