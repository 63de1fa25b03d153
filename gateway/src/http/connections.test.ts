import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, get } from 'node:https'
import { type AddressInfo, BlockList, connect, createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { metrics } from '@overlay/process'
import { expect, onTestFinished, test, vi } from 'vitest'
import { makeCertificate, rsaOf } from '../../testing/certificates.js'
import { ADMIN } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import type { ServerLimits } from './server.js'

const PATH = '/edge/management/v1/services'
const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)

/** A client that never closes its own side. */
const openTcp = async ({ port }: TestGateway): Promise<Socket> => {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
  return socket
}
const secured = async (socket: Socket): Promise<TLSSocket> => {
  const tls = connectTls({ socket, rejectUnauthorized: false, allowHalfOpen: true } as object)
  await once(tls, 'secureConnect')
  return tls
}
const openTls = async (gateway: TestGateway): Promise<TLSSocket> => secured(await openTcp(gateway))
const ended = (socket: Socket): Promise<unknown> => {
  socket.resume()
  if (socket.destroyed || socket.readableEnded) return Promise.resolve()
  return new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
}
const untilOpen = (count: number) =>
  expect.poll(async () => (await metrics.connections.get()).values[0]?.value).toBe(count)
const refusals = async (reason: string): Promise<number> =>
  (await metrics.connectionsRefused.get()).values.find(({ labels }) => labels.reason === reason)?.value ?? 0

/** A gateway of its own; at the end none of its connections is open. */
async function withGateway(limits: Partial<ServerLimits>, act: (gateway: TestGateway) => Promise<void>) {
  const gateway = await startGateway(limits)
  try {
    await act(gateway)
  } finally {
    await gateway[Symbol.asyncDispose]()
  }
}

test('connections on which nothing is sent are closed, though their clients keep them open', () =>
  withGateway({ headersMs: 100 }, async (gateway) => {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => openTcp(gateway)))
    await Promise.all(sockets.map(ended))
    await untilOpen(0)
    for (const socket of sockets) socket.destroy()
  }))

test.each([
  ['nothing', ''],
  ['half a header', 'GET / HTTP/1.1\r\nhost'],
])('a client that sends %s after its handshake gets 408, and its connection is closed', (_what, sent) =>
  withGateway({ headersMs: 100 }, async (gateway) => {
    const socket = await openTls(gateway)
    socket.write(sent)
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /)
    await untilOpen(0)
    socket.destroy()
  }),
)

test('a client that is not done with its header reads why it is refused', () =>
  withGateway({}, async (gateway) => {
    const socket = await openTls(gateway)
    socket.write(`GET / HTTP/1.1\r\nx: ${'x'.repeat(200 << 10)}`)
    const answer = text(socket)
    socket.write('x'.repeat(200 << 10))
    expect(await answer).toMatch(/^HTTP\/1\.1 431 /)
    await untilOpen(0)
    socket.destroy()
  }))

test('a client that does not read its answer is disconnected', () =>
  withGateway({ idleMs: 500 }, async (gateway) => {
    gateway.fakes.rows.set('policy services', [JSON.stringify(['x'.repeat(32 << 20)])])
    const socket = await openTls(gateway)
    socket.write(`GET ${PATH} HTTP/1.1\r\nhost: x\r\nzt-session: ${ADMIN}\r\n\r\n`)
    await untilOpen(0)
    socket.destroy()
  }))

test('one source has no more connections than its limit, handshakes included', () =>
  withGateway({ connectionsPerSource: 3 }, async (gateway) => {
    const before = await refusals('source')
    const open = [await openTcp(gateway), await openTcp(gateway), await openTls(gateway)]
    await ended(await openTcp(gateway))
    expect(await refusals('source')).toBe(before + 1)
    for (const socket of open) socket.destroy()
    await untilOpen(0)
    ;(await openTls(gateway)).destroy()
    await untilOpen(0)
  }))

test('there are no more connections than the limit', () =>
  withGateway({ connections: 2 }, async (gateway) => {
    const before = await refusals('total')
    const open = [await openTcp(gateway), await openTls(gateway)]
    await ended(await openTcp(gateway))
    expect(await refusals('total')).toBe(before + 1)
    for (const socket of open) socket.destroy()
    await untilOpen(0)
    ;(await openTls(gateway)).destroy()
    await untilOpen(0)
  }))

const header = (address: string) => `PROXY TCP4 ${address} 127.0.0.1 4096 443\r\n`

async function sourceSeen(gateway: TestGateway, socket: Socket): Promise<string | undefined> {
  const tls = await secured(socket)
  tls.end(`GET ${PATH} HTTP/1.1\r\nhost: x\r\nzt-session: ${ADMIN}\r\nconnection: close\r\n\r\n`)
  expect(await text(tls)).toMatch(/^HTTP\/1\.1 200 /)
  return gateway.fakes.calls.findLast(({ method }) => method === 'policy.entities.list')?.context
    .sourceAddress
}

test('a request comes from the address that the balancer names', () =>
  withGateway({ proxies: loopback }, async (gateway) => {
    const whole = await openTcp(gateway)
    whole.write(header('192.0.2.1'))
    expect(await sourceSeen(gateway, whole)).toBe('192.0.2.1')

    const parts = await openTcp(gateway)
    for (const part of header('192.0.2.2').split(/(?=T)/))
      await new Promise((done) => parts.write(part, done))
    expect(await sourceSeen(gateway, parts)).toBe('192.0.2.2')

    expect(await sourceSeen(gateway, await openTcp(gateway))).toBe('127.0.0.1')
    await untilOpen(0)
  }))

test('limits are those of the clients, not of the balancer', () =>
  withGateway({ proxies: loopback, connectionsPerSource: 1 }, async (gateway) => {
    const [first, second] = [await openTcp(gateway), await openTcp(gateway)]
    first.write(header('192.0.2.1'))
    second.write(header('192.0.2.2'))
    await Promise.all([secured(first), secured(second)])
    const third = await openTcp(gateway)
    third.write(header('192.0.2.1'))
    await ended(third)
    for (const socket of [first, second]) socket.destroy()
    await untilOpen(0)
  }))

const binaryHeader = Buffer.from('0d0a0d0a000d0a515549540a21110000', 'hex')

test.each([
  ['of version 1', Buffer.from(header('192.0.2.1'))],
  ['of version 2', binaryHeader],
])('a header %s from any other address is refused, and the setting is named', (_what, sent) => {
  const lines: unknown[][] = []
  return withGateway({ noteRefused: (...line) => lines.push(line) }, async (gateway) => {
    const before = await refusals('proxy')
    const socket = await openTcp(gateway)
    socket.write(sent)
    await ended(socket)
    expect(await refusals('proxy')).toBe(before + 1)
    expect(lines).toEqual([
      [
        '127.0.0.1',
        {
          sourceAddress: '127.0.0.1',
          reason: 'proxy',
          detail: 'PROXY header from 127.0.0.1, which OVERLAY_PROXY_PROTOCOL_FROM does not list',
        },
      ],
    ])
    await untilOpen(0)
  })
})

test.each([
  ['a client', {}, ''],
  ['a balancer that is listed', { proxies: loopback }, ''],
  ['a balancer that sends the header, too', { proxies: loopback }, header('192.0.2.1')],
])('plain HTTP of %s is answered, and counted', (_what, limits, before) => {
  const lines: unknown[][] = []
  return withGateway({ ...limits, noteRefused: (...line) => lines.push(line) }, async (gateway) => {
    const counted = await refusals('http')
    const socket = await openTcp(gateway)
    socket.write(`${before}GET / HTTP/1.1\r\nhost: x\r\n\r\n`)
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 [\s\S]*\r\n\r\nThis port speaks TLS\.\n$/)
    socket.destroy()
    expect(await refusals('http')).toBe(counted + 1)
    const source = before === '' ? '127.0.0.1' : '192.0.2.1'
    expect(lines).toEqual([
      [source, { sourceAddress: source, reason: 'http', detail: expect.stringMatching(/^plain HTTP: /) }],
    ])
    await untilOpen(0)
  })
})

test('other bytes than TLS end the connection', () =>
  withGateway({}, async (gateway) => {
    const before = [await refusals('http'), await refusals('proxy')]
    for (const sent of ['P', 'PROX', 'GE', 'get / HTTP/1.1\r\n', '\0\0\0', '\r\n\r\n']) {
      const socket = await openTcp(gateway)
      socket.write(sent)
      socket.end()
      await ended(socket)
    }
    expect([await refusals('http'), await refusals('proxy')]).toEqual(before)
    await untilOpen(0)
  }))

test('a handshake may arrive byte by byte', () =>
  withGateway({}, async (gateway) => {
    const direct = connect({ host: '127.0.0.1', port: gateway.port, noDelay: true })
    const slow = new Duplex({
      read: () => undefined,
      async write(chunk: Buffer, _encoding, done) {
        for (const byte of chunk) await new Promise((sent) => direct.write(Buffer.of(byte), sent))
        done()
      },
    })
    direct.on('data', (chunk) => slow.push(chunk)).on('close', () => slow.destroy())
    expect(await sourceSeen(gateway, slow as Socket)).toBe('127.0.0.1')
    direct.destroy()
    await untilOpen(0)
  }))

test.each([
  ['a malformed header', 'PROXY TCP4 nonsense\r\n'],
  ['half a header', 'PROXY TCP4'],
  ['nothing', ''],
])('a balancer that sends %s is disconnected', (_what, sent) =>
  withGateway({ proxies: loopback, headersMs: 100 }, async (gateway) => {
    const before = await refusals('header')
    const socket = await openTcp(gateway)
    socket.write(sent)
    await ended(socket)
    expect(await refusals('header')).toBe(before + 1)
    await untilOpen(0)
    socket.destroy()
  }),
)

test('of an answer that its client does not read, a part is written and no more', () =>
  withGateway({}, async (gateway) => {
    const size = 48 << 20 // more than the buffers of the system take
    gateway.fakes.rows.set('policy services', [`[{"id":"${'a'.repeat(size)}"}]`])
    const tls = await openTls(gateway)
    tls.write(`GET ${PATH} HTTP/1.1\r\nhost: localhost\r\nzt-session: ${ADMIN}\r\n\r\n`)
    await once(tls, 'readable')
    tls.destroy()
    await expect.poll(() => gateway.accessRecords.length).toBe(1)
    expect(gateway.accessRecords.at(-1)?.c.env.incoming.socket.bytesWritten).toBeLessThan(size / 2)
  }))

/** The first bytes of a TLS client. */
async function clientHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connectTls({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' })
  client.on('error', () => undefined)
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [hello] = await once(socket, 'data')
  client.destroy()
  server.close()
  return hello
}

test('a source that begins many handshakes at once does not delay those of others', () =>
  withGateway({}, async (gateway) => {
    const hello = await clientHello()
    const flood = await Promise.all(Array.from({ length: 400 }, () => openTcp(gateway)))
    let answered = 0
    for (const socket of flood) {
      socket.once('data', () => answered++)
      socket.write(hello)
    }
    const other = connect({ host: '127.0.0.1', port: gateway.port, localAddress: '127.0.0.2' })
    ;(await secured(other)).destroy()
    expect(answered).toBeGreaterThan(0)
    expect(answered).toBeLessThan(flood.length / 2)
    for (const socket of flood) socket.destroy()
    await untilOpen(0)
  }))

test('a client whose authority has renewed its key, longer and under the same name, keeps its connection', () =>
  withGateway({}, async ({ port }) => {
    const [former, renewed] = [
      await makeCertificate('factory', undefined, true, rsaOf(2048)),
      await makeCertificate('factory', undefined, true, rsaOf(3072)),
    ]
    const leaf = await makeCertificate('client', former)
    const tls = { key: leaf.keyPem, cert: leaf.pem + renewed.pem + former.pem }
    const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false, ...tls })
    const statuses: (number | undefined)[] = []
    for (let i = 0; i < 4; i++) {
      const [answer] = (await once(
        get({ host: '127.0.0.1', port, path: '/nothing', agent }),
        'response',
      )) as [IncomingMessage]
      await text(answer)
      statuses.push(answer.statusCode)
    }
    agent.destroy()
    expect(statuses).toEqual([404, 404, 404, 404])
  }))

/** A client certificate below so many authorities, each of which the next one has signed. */
async function chainBelow(authorities: number) {
  let last = await makeCertificate('top', undefined, true)
  let above = last.pem
  for (let i = 1; i < authorities; i++) {
    last = await makeCertificate(`authority ${i}`, last, true)
    above = last.pem + above
  }
  const leaf = await makeCertificate('client', last)
  return { key: leaf.keyPem, cert: leaf.pem + above }
}

test('a client with more certificates than any chain is refused, and its source waits for its next handshake', () =>
  withGateway({}, async ({ port, request }) => {
    const before = await refusals('certificates')
    const [long, usual] = [await chainBelow(30), await chainBelow(7)]
    const connectAt = (localAddress: string, certificate = {}) =>
      new Promise<string>((resolve) => {
        const options = { host: '127.0.0.1', port, localAddress, rejectUnauthorized: false, ...certificate }
        const socket = connectTls(options, () =>
          socket.write('GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n'),
        )
        socket.on('data', () => resolve('answered')).on('error', () => resolve('refused'))
        socket.on('close', () => resolve('refused')).on('data', () => socket.destroy())
      })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    expect(await connectAt('127.0.0.3', usual)).toBe('answered')
    expect(await connectAt('127.0.0.2', long)).toBe('refused')
    const answers: string[] = []
    const waiting = [{}, usual].map(async (certificate) =>
      answers.push(await connectAt('127.0.0.2', certificate)),
    )
    expect(await connectAt('127.0.0.3')).toBe('answered')
    expect(answers).toEqual([])
    expect(await refusals('certificates')).toBe(before + 1)
    vi.advanceTimersByTime(500)
    await Promise.all(waiting)
    expect(answers).toEqual(['answered', 'answered'])

    const hello = await clientHello()
    const stalled = Array.from({ length: 4 }, () => {
      const socket = connect({ host: '127.0.0.1', port, localAddress: '127.0.0.2' })
      socket.on('error', () => undefined).write(hello)
      return socket
    })
    await Promise.all(stalled.map((socket) => once(socket, 'data'))) // the handshakes have begun
    const fifth = connectAt('127.0.0.2').then((answer) => answers.push(answer))
    expect(await connectAt('127.0.0.3')).toBe('answered')
    expect(answers).toHaveLength(2)
    vi.advanceTimersByTime(2000)
    await fifth
    expect(answers).toEqual(['answered', 'answered', 'answered'])

    expect(await connectAt('127.0.0.2', long)).toBe('refused')
    const afterRest = connectAt('127.0.0.2')
    expect(await connectAt('127.0.0.3')).toBe('answered')
    vi.advanceTimersByTime(500)
    expect(await afterRest).toBe('answered')
    await vi.advanceTimersByTimeAsync(30_000)
    vi.useRealTimers()
    const large = { method: 'POST', tls: usual, text: 'x'.repeat(50_000) } // with the handshake
    expect((await request('/nothing', large)).status).toBe(404)
  }))
