import { once } from 'node:events'
import { type AddressInfo, connect as connectPlain } from 'node:net'
import { type ConnectionOptions, connect, createServer, type TLSSocket } from 'node:tls'
import pino from 'pino'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import {
  callerTls,
  context,
  contexts,
  hangingProxy,
  kindsOfCalls,
  logLines,
  peersAt,
  sendLarge,
  sendSmall,
  serverTls,
  startServer,
} from '../testing/test-service.js'
import { dial } from './dial.js'
import type { Fault } from './fault.js'
import { carryFrames, FRAMES, MalformedMessage, openFrameReader } from './frame-connection.js'
import { AuthorizeRequest, AuthorizeResponse, PolicyServiceService } from './gen/overlay/policy/v1/policy.js'
import { Answer, Call } from './gen/overlay/stream/v1/stream.js'
import { host } from './host.js'
import { MESSAGE_LIMIT_BYTES } from './limits.js'
import type { Methods } from './methods.js'
import { type OpenConnection, openMuxClient } from './mux-client.js'
import { peerConnection } from './peer-connection.js'
import { connectPeers } from './peers.js'
import type { Replica } from './replica.js'
import { serve } from './serve.js'

beforeEach(() => {
  contexts.length = 0
  logLines.length = 0
})

const connection = peerConnection('policy', callerTls)

/** A connection of a peer that writes what it likes. */
async function connectTo(at: Pick<ConnectionOptions, 'port' | 'socket'>): Promise<TLSSocket> {
  const socket = connect({ ...connection.options(), host: '127.0.0.1', ALPNProtocols: [FRAMES], ...at })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
  return socket.on('error', () => undefined) // 'close' follows
}

function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(message.length)
  return Buffer.concat([head, message])
}

const callOf = (tag: number, method: string, request: Uint8Array): Buffer =>
  Buffer.from(Call.encode(Call.fromPartial({ tag, method, request: Buffer.from(request) })).finish())

const { authorize } = PolicyServiceService
const requestOf = (serviceId: string): Buffer =>
  authorize.requestSerialize(AuthorizeRequest.fromPartial({ serviceId }))

describe('frames', () => {
  const messages = ['', 'a', 'bcd', 'x'.repeat(70_000), 'e']
  const bytes = Buffer.concat(messages.map((text) => frame(Buffer.from(text))))

  test.each([1, 3, 4, 7, 1000, 100_000])('arrive whole from chunks of %d bytes', (size) => {
    const received: string[] = []
    const read = openFrameReader((message) => received.push(message.toString()))
    for (let at = 0; at < bytes.length; at += size) read(bytes.subarray(at, at + size))
    expect(received).toEqual(messages)
  })
  test('longer than the limit are refused before they arrive', () => {
    const read = openFrameReader(() => expect.unreachable())
    const head = Buffer.alloc(4)
    head.writeUInt32BE(MESSAGE_LIMIT_BYTES + 1)
    expect(() => read(head)).toThrow(`${MESSAGE_LIMIT_BYTES + 1} bytes`)
  })
})

describe('a peer that sends', () => {
  const malformed = [
    ['a length beyond the limit', Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ['a message that is no call', frame(Buffer.from([0x0a, 0xff]))],
    ['HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
  ] as const
  test.each(malformed)('%s loses its connection and no other, with a log line', async (_what, bytes) => {
    await using server = await startServer()
    await using proxy = await hangingProxy(server.port)
    await using peers = peersAt(proxy.port)
    await sendSmall(peers, 'yes', context())
    const connections = proxy.accepted()
    const socket = await connectTo({ port: server.port })
    const closed = once(socket.resume(), 'close')
    socket.write(bytes)
    await closed
    const line: unknown = JSON.parse(logLines.at(-1) ?? '')
    expect(line).toMatchObject({ level: 40, peer: 'sessions', msg: 'connection ended' })
    expect(await sendSmall(peers, 'yes', context())).toEqual(['alice', 'a'])
    expect(proxy.accepted()).toBe(connections)
    expect(logLines.length).toBe(1)
  })
  test('another call with the tag of a running one loses its connection: running calls are counted by tag', async () => {
    let executed = 0
    const definition = { authorize }
    const methods: Methods<typeof definition> = {
      async authorize(_request, { signal }) {
        executed++
        await once(signal, 'abort')
        return AuthorizeResponse.create()
      },
    }
    const options = {
      log: pino({ level: 'silent' }),
      tls: serverTls,
      callersOf: () => [callerTls.name],
    }
    await using server = await serve('127.0.0.1:0', options, [host(definition, methods)])
    const socket = await connectTo({ port: server.port })
    const closed = once(socket.resume(), 'close')
    for (let n = 0; n < 3; n++) socket.write(frame(callOf(1, authorize.path, requestOf('yes'))))
    await closed
    expect(executed).toBe(1)
  })
  test('calls, and does not read the answers, is not read either until it does', async () => {
    let executed = 0
    const definition = { authorize }
    const methods: Methods<typeof definition> = {
      async authorize() {
        executed++
        return AuthorizeResponse.fromPartial({ serviceName: 'x'.repeat(20_000) })
      },
    }
    const options = {
      log: pino({ level: 'silent' }),
      tls: serverTls,
      callersOf: () => [callerTls.name],
    }
    await using server = await serve('127.0.0.1:0', options, [host(definition, methods)])
    await using peers = peersAt(server.port)
    const socket = await connectTo({ port: server.port })
    const calls = 1500
    for (let tag = 1; tag <= calls; tag++) socket.write(frame(callOf(tag, authorize.path, requestOf('yes'))))
    for (let n = 0; n < 200; n++) {
      await sendSmall(peers, 'yes', context())
      executed--
    }
    expect(executed).toBeGreaterThan(0)
    expect(executed).toBeLessThan(calls / 2)

    const tags = new Set<number>()
    const read = openFrameReader((message) => tags.add(Answer.decode(message).tag))
    socket.on('data', read)
    await expect.poll(() => tags.size).toBe(calls)
    expect(executed).toBe(calls)
  })
})

test('a connection whose handshake ends while the server stops is served, and asked to end', async () => {
  const server = await startServer()
  const plain = connectPlain(server.port, '127.0.0.1')
  await once(plain, 'connect')
  const other = await connectTo({ port: server.port }) // is accepted after the first one
  let isStopped = false
  const stopped = server[Symbol.asyncDispose]().then(() => {
    isStopped = true
  })
  const othersEnd = once(other.resume().end(), 'close')
  const socket = await connectTo({ socket: plain })
  await othersEnd
  const tags: number[] = []
  socket.on(
    'data',
    openFrameReader((message) => tags.push(Answer.decode(message).tag)),
  )
  socket.write(frame(callOf(1, authorize.path, requestOf('yes'))))
  await expect.poll(() => tags).toEqual([0, 1])
  expect(isStopped).toBe(false)
  socket.end()
  await stopped
})

test('a server that sends what is no answer fails the calls of its connection, which is replaced', async () => {
  await using server = await startServer()
  const connections: TLSSocket[] = []
  const malformed = createServer({ ...serverTls.contextOptions(), ALPNProtocols: [FRAMES] }, (socket) => {
    connections.push(socket.on('error', () => undefined))
    socket.once('data', () => void socket.write(Buffer.from([0, 0, 0, 2, 0x0a, 0xff])))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void malformed.close())
  await once(malformed, 'listening')
  const { port } = malformed.address() as AddressInfo
  const open: OpenConnection = async (events) =>
    carryFrames(
      await dial(`127.0.0.1:${connections.length === 0 ? port : server.port}`, connection.options()),
      events,
    )
  const client = openMuxClient(open)
  onTestFinished(() => client.reset())
  const call = () => client.call(authorize.path, requestOf('yes'), context(), 5000)
  await expect(call()).rejects.toMatchObject({ code: 'UNAVAILABLE', cause: expect.any(MalformedMessage) })
  expect(authorize.responseDeserialize(await call()).serviceName).toBe('a')
})

test('calls to a server that reads nothing are refused before they fill the memory, and none before 64 MiB wait', async () => {
  await using server = await startServer()
  await using proxy = await hangingProxy(server.port)
  await using peers = peersAt(proxy.port)
  expect(await sendSmall(peers, 'yes', context())).toEqual(['alice', 'a'])
  proxy.hang()
  const word = 'x'.repeat(1024 * 1024)
  const outcomes: Promise<unknown>[] = []
  const refusals: number[] = []
  const abort = new AbortController()
  for (let n = 1; n <= 100; n++)
    outcomes.push(
      sendSmall(peers, word, context(undefined, abort.signal)).catch(({ code }: Fault) => {
        if (code === 'SERVER_TOO_MANY_REQUESTS') refusals.push(n)
      }),
    )
  await Promise.all(outcomes.slice(90))
  expect(refusals[0]).toBeGreaterThan(60)
  expect(refusals.length).toBeGreaterThan(25)
  abort.abort()
  await Promise.all(outcomes)
})

/** Peers whose beats the test makes. */
const beatenPeers = (port: number, beats: Set<() => void>) =>
  connectPeers(`127.0.0.1:${port}`, {
    tls: callerTls,
    service: 'policy',
    startBeats(beat) {
      beats.add(beat)
      return () => beats.delete(beat)
    },
  })

test('a replica loses its connections after 13 s without an answer, also when there is no other', async () => {
  await using server = await startServer()
  await using only = await hangingProxy(server.port)
  const beats = new Set<() => void>()
  await using peers = beatenPeers(only.port, beats)
  await sendSmall(peers, 'yes', context())
  only.hang()
  const call = expect(sendSmall(peers, 'yes', context())).rejects.toMatchObject({
    code: 'UNAVAILABLE',
  })
  for (let n = 0; n < 60; n++) for (const beat of beats) beat()
  await call
  expect(await sendSmall(peers, 'yes', context())).toEqual(['alice', 'a'])
  for (const beat of beats) beat()
  expect(beats.size).toBe(0) // nothing waits
})

test('a connection that is lost without a word is replaced, though streams of its replica work', async () => {
  await using server = await startServer()
  await using proxy = await hangingProxy(server.port)
  const beats = new Set<() => void>()
  await using peers = beatenPeers(proxy.port, beats)
  await sendLarge(peers, 'yes', context())
  proxy.hang()
  const call = expect(sendLarge(peers, 'yes', context())).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  const [replica] = peers.replicas() as Replica[]
  for (let n = 0; n < 60; n++) {
    replica?.keepalive.received() // from a stream
    for (const beat of beats) beat()
  }
  await call
  expect(await sendLarge(peers, 'yes', context())).toEqual(['alice', 'a'])
})

test('a request beyond the limit fails alone', async () => {
  await using server = await startServer()
  await using proxy = await hangingProxy(server.port)
  await using peers = peersAt(proxy.port)
  for (const [, send] of kindsOfCalls) {
    expect(await send(peers, 'yes', context())).toEqual(['alice', 'a'])
    const connections = proxy.accepted()
    const word = 'x'.repeat(MESSAGE_LIMIT_BYTES)
    await expect(send(peers, word, context())).rejects.toMatchObject({ code: 'UNHANDLED' })
    expect(await send(peers, 'yes', context())).toEqual(['alice', 'a'])
    expect(proxy.accepted()).toBe(connections)
  }
})
