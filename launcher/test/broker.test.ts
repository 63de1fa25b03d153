import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { connect as connectSocket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls, type SecureContextOptions, type TLSSocket } from 'node:tls'
import { connect, type NatsConnection, type Subscription } from '@nats-io/transport-node'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { type BrokerOptions, busUser, startBroker } from '../src/servers/broker.js'
import { freePort } from '../src/system/ports.js'
import { commandLineOf } from '../src/system/process-identity.js'
import { findNatsServer, startNatsServer } from '../testing/nats-server.js'
import { testCertificates } from '../testing/test-certificates.js'

const natsServer = await findNatsServer()
if (!natsServer) {
  const reason = 'nats-server is not on PATH: only the built-in broker is tested'
  if (process.env.CI === 'true') throw new Error(reason)
  console.warn(reason)
}

const password = 'sesame'
const login = { user: busUser, pass: password }
const configDirectory = await mkdtemp(join(tmpdir(), 'overlay test '))
afterAll(() => rm(configDirectory, { recursive: true }))

const configFile = join(configDirectory, 'nats.conf')
const certificates = await testCertificates()
afterAll(() => certificates[Symbol.asyncDispose]())
const serverTls = await certificates.issue({ name: 'nats', hosts: ['nats', 'localhost', '127.0.0.1'] })
const clientTls = await certificates.issue({ name: 'policy', hosts: ['policy'] })
const servers = [
  { program: 'the built-in broker', startAt: startBroker },
  ...(natsServer
    ? [
        {
          program: 'nats-server',
          startAt: (options: Omit<BrokerOptions, 'limits'>) =>
            startNatsServer({ path: natsServer, configFile, ...options }),
        },
      ]
    : []),
]
const buses = servers.flatMap(({ program, startAt }) => [
  { name: program, tls: undefined, start: async () => startAt({ port: await freePort(), password }) },
  {
    name: `${program} with TLS`,
    tls: clientTls,
    start: async () => startAt({ port: await freePort(), password, tls: serverTls }),
  },
])

describe.each(buses)('$name', ({ start, tls }) => {
  test('delivers a message to every subscription that its subject matches', async () => {
    const { client } = await network()
    const [reader, writer] = [await client(), await client()]
    const subjects = ['a.b.c', 'a.*.c', 'a.>', '>', '*.*.*', 'a.b', 'a.*', 'a.b.c.>', 'a.b.*.d']
    const subscriptions = subjects.map((subject) => reader.subscribe(subject))
    await reader.flush()
    writer.publish('a.b.c', 'hello')
    await writer.flush()
    expect(await received(reader, subscriptions)).toEqual([
      ['hello'],
      ['hello'],
      ['hello'],
      ['hello'],
      ['hello'],
      [],
      [],
      [],
      [],
    ])
  })

  test('delivers messages that were sent before a client drains', async () => {
    const { client } = await network()
    const [reader, writer] = [await client(), await client()]
    const subscription = reader.subscribe('last.words')
    await reader.flush()
    for (let n = 0; n < 1000; n++) writer.publish('last.words', String(n))
    await writer.drain()
    await reader.drain()
    let count = 0
    for await (const _ of subscription) count++
    expect(count).toBe(1000)
  })

  test.each([
    ['answers a ping', `${connectLine()}PING\r\n`, 'PONG'],
    [
      'reads commands in any case',
      `${connectLine().replace('CONNECT', 'connect')}sub a 1\r\npub a 2\r\nhi\r\nping\r\n`,
      'MSG a 1 2\r\nhi\r\nPONG',
    ],
    [
      'keeps the connection after an invalid subject',
      `${connectLine()}SUB a..b 1\r\nPING\r\n`,
      "-ERR 'Invalid Subject'\r\nPONG",
    ],
    ['hangs up on unknown words', `${connectLine()}HELLO\r\n`, "-ERR 'Unknown Protocol Operation'"],
    [
      'hangs up on a message over its limit',
      `${connectLine()}PUB a 9999999\r\n`,
      "-ERR 'Maximum Payload Violation'",
    ],
    ['refuses a wrong password', connectLine('wrong'), "-ERR 'Authorization Violation'"],
    ['hears no one who has not logged in', 'SUB > 1\r\nPING\r\n', "-ERR 'Authorization Violation'"],
    [
      'hangs up on an endless line',
      `${connectLine()}SUB ${'a'.repeat(5000)}`,
      "-ERR 'maximum control line exceeded'",
    ],
  ])('%s', async (_rule, input, expected) => {
    const { port } = await network()
    const socket = tls === undefined ? connectSocket(port, '127.0.0.1') : await secured(port, filesIn(tls))
    const answer = text(socket)
    socket.on('error', () => undefined) // a reset after the last line counts as an end
    socket.write(input)
    if (expected.endsWith('PONG')) socket.end()
    expect((await answer).replace(/^INFO .*\r\n/, '').trim()).toBe(expected)
  })

  /** A server whose clients are closed after the test. */
  async function network() {
    const bus = await start()
    const clients: NatsConnection[] = []
    onTestFinished(async () => {
      await Promise.all(clients.map((client) => client.close()))
      await bus.stop()
    })
    return {
      port: Number(new URL(bus.url).port),
      async client() {
        const server = { servers: new URL(bus.url).host, ...login, reconnect: false }
        const client = await connect({ ...server, ...(tls !== undefined && { tls: filesIn(tls) }) })
        clients.push(client)
        return client
      },
    }
  }
})

describe.each(servers)('$program with TLS', ({ startAt }) => {
  const start = async () => startAt({ port: await freePort(), password, tls: serverTls })

  test('sends nothing but its first line to a client without TLS', async () => {
    await using bus = await start()
    const socket = connectSocket(portOf(bus), '127.0.0.1')
    socket.on('error', () => undefined) // a reset after the last line counts as an end
    const answer = text(socket)
    socket.write(`${connectLine()}SUB > 1\r\nPING\r\n`)
    const [info, ...rest] = (await answer).split('\r\n')
    expect(info).toMatch(/^INFO .*"tls_required":true/)
    expect(rest.join('')).not.toContain('PONG')
  })

  test('refuses clients without a certificate, and with one of another authority', async () => {
    await using bus = await start()
    await using others = await testCertificates()
    const stranger = filesIn(await others.issue({ name: 'policy', hosts: ['policy'] }))
    const { ca } = filesIn(clientTls)
    for (const files of [{ ca }, { ...stranger, ca }]) {
      const socket = await secured(portOf(bus), files)
      const answer = text(socket)
      socket.write(`${connectLine()}PING\r\n`)
      expect(await answer.catch(() => 'refused')).not.toContain('PONG')
    }
    const socket = await secured(portOf(bus), filesIn(clientTls))
    socket.write(`${connectLine()}PING\r\n`)
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toContain('PONG')
    socket.destroy()
  })

  test('uses a renewed certificate for new connections, and keeps the others', async () => {
    await using own = await testCertificates(new Date(Date.now() - 2 * 86_400_000))
    let reload = (): void => undefined
    const server = { name: 'nats', hosts: ['nats', 'localhost', '127.0.0.1'] } as const
    const tls = await own.issue({ ...server, onRenewed: () => reload() })
    const directory = await own.issue({ name: 'policy', hosts: ['policy'] })
    await using bus = await startAt({ port: await freePort(), password, tls })
    reload = bus.reload
    const first = await secured(portOf(bus), filesIn(directory))
    const answerTo = async (input: string): Promise<string> => {
      first.write(input)
      const [answer] = await once(first, 'data')
      return String(answer)
    }
    expect(await answerTo(`${connectLine()}PING\r\n`)).toContain('PONG')
    await own.at(new Date())
    await expect.poll(() => certificateOf(bus, directory), { timeout: 30_000 }).not.toEqual(peerOf(first))
    expect(await answerTo('PING\r\n')).toContain('PONG')
    first.destroy()
  })
})

test('the built-in broker disconnects a client that does not read', async () => {
  await using broker = await startBroker({
    port: await freePort(),
    password,
    limits: { pendingBytes: 1024 * 1024 },
  })
  const port = Number(new URL(broker.url).port)
  const slow = connectSocket(port, '127.0.0.1')
  slow.on('error', () => undefined)
  const closed = new Promise((resolve) => slow.once('close', resolve))
  await new Promise<void>((resolve) => {
    slow.write(`${connectLine()}SUB flood 1\r\nPING\r\n`)
    slow.on('data', (words) => {
      if (words.includes('PONG')) resolve(void slow.removeAllListeners('data').pause())
    })
  })
  const writer = await connect({ servers: `127.0.0.1:${port}`, ...login })
  for (let n = 0; n < 40; n++) {
    writer.publish('flood', new Uint8Array(512 * 1024))
    await writer.flush()
  }
  slow.resume()
  await closed
  await writer.close()
})

test.each([
  ['a connection', { subscriptions: 10 }, subs(11), 'maximum subscriptions exceeded'],
  ['all connections together', { allSubscriptions: 10 }, subs(11), 'maximum subscriptions exceeded'],
  [
    'the length of subjects',
    { subjectBytes: 10 },
    `SUB ${'a'.repeat(11)} 1\r\n`,
    'maximum subject length exceeded',
  ],
])(
  'the built-in broker disconnects a client that exceeds the limit of %s',
  async (_what, limits, input, reason) => {
    await using broker = await startBroker({ port: await freePort(), password, limits })
    const socket = connectSocket(Number(new URL(broker.url).port), '127.0.0.1')
    socket.on('error', () => undefined) // a reset after the last line counts as an end
    const answer = text(socket)
    socket.write(connectLine() + input)
    expect(await answer).toContain(`-ERR '${reason}'`)
  },
)

test.each([
  ['a queue group', 'SUB a workers 1\r\n'],
  ['a reply', 'PUB a inbox 2\r\nhi\r\n'],
  ['headers', 'HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n'],
  ['a number of messages', 'UNSUB 1 5\r\n'],
])('the built-in broker refuses operations that it does not implement: %s', async (_what, line) => {
  await using broker = await startBroker({ port: await freePort(), password })
  const socket = connectSocket(Number(new URL(broker.url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  const answer = text(socket)
  socket.write(connectLine() + line)
  expect(await answer).toContain("-ERR 'Unknown Protocol Operation'")
})

test('the built-in broker limits its connections, and closes those that do not log in', async () => {
  const limits = { connections: 2, loginMs: 300 }
  await using broker = await startBroker({ port: await freePort(), password, limits })
  const silent = () => connectSocket(Number(new URL(broker.url).port), '127.0.0.1')
  const [one, two] = [silent(), silent()]
  await Promise.all([one, two].map((socket) => once(socket, 'data')))
  const third = silent().on('error', () => undefined)
  expect(await text(third)).toBe('')
  await Promise.all([one, two].map((socket) => once(socket, 'close')))
})

test('the password of a nats-server is in a file for its owner, and not on its command line', async () => {
  if (!natsServer) return
  await using server = await startNatsServer({
    path: natsServer,
    port: await freePort(),
    password,
    configFile,
  })
  expect(await commandLineOf(server.pid)).not.toContain(password)
  expect((await stat(configFile)).mode & 0o777).toBe(0o600)
})

function connectLine(pass = password): string {
  return `CONNECT ${JSON.stringify({ verbose: false, user: busUser, pass })}\r\n`
}

function subs(count: number): string {
  return Array.from({ length: count }, (_, n) => `SUB s${n} ${n}\r\n`).join('')
}

/** The messages received so far. */
async function received(client: NatsConnection, subscriptions: readonly Subscription[]): Promise<string[][]> {
  await client.flush()
  return Promise.all(
    subscriptions.map(async (subscription) => {
      subscription.drain()
      const words: string[] = []
      for await (const message of subscription) words.push(message.string())
      return words
    }),
  )
}

const portOf = ({ url }: { readonly url: string }): number => Number(new URL(url).port)

function filesIn(directory: string) {
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8')
  return { cert: read('tls.crt'), key: read('tls.key'), ca: read('ca.crt') }
}

/** A connection that has read the first line of the server and continues with TLS. */
async function secured(port: number, files: SecureContextOptions): Promise<TLSSocket> {
  const socket = connectSocket(port, '127.0.0.1')
  await once(socket, 'data')
  socket.pause()
  const secure = connectTls({ socket, servername: 'localhost', ...files })
  secure.on('error', () => undefined) // a reset after the last line counts as an end
  await once(secure, 'secureConnect')
  return secure
}

const peerOf = (socket: TLSSocket): string => socket.getPeerCertificate().fingerprint256

async function certificateOf(bus: { readonly url: string }, directory: string): Promise<string> {
  const socket = await secured(portOf(bus), filesIn(directory))
  const fingerprint = peerOf(socket)
  socket.destroy()
  return fingerprint
}
