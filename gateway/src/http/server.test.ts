import { constants } from 'node:crypto'
import { once } from 'node:events'
import { Agent, get } from 'node:https'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeCertificate } from '../../testing/certificates.js'
import { ADMIN } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())

const open = (options: ConnectionOptions = {}, port = gateway.port) =>
  new Promise<TLSSocket>((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options }, () =>
      resolve(socket),
    )
    socket.on('error', reject)
  })

test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is spoken', async (version) => {
  const socket = await open({ minVersion: version, maxVersion: version })
  expect(socket.getProtocol()).toBe(version)
  socket.destroy()
})

test.each([
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
])('TLS 1.2 is spoken with %s', async (ciphers) => {
  const socket = await open({ maxVersion: 'TLSv1.2', ciphers })
  expect(socket.getCipher().name).toBe(ciphers)
  socket.destroy()
})

test.each(['AES128-GCM-SHA256', 'AES128-SHA', 'ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384'])(
  'TLS 1.2 is not spoken with %s',
  async (ciphers) => {
    await expect(open({ maxVersion: 'TLSv1.2', ciphers: `${ciphers}:@SECLEVEL=0` })).rejects.toThrow()
  },
)

test('older versions are not', async () => {
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  await expect(open(old)).rejects.toThrow()
})

test('the protocol is HTTP/1.1, and nothing else', async () => {
  const socket = await open({ ALPNProtocols: ['h2', 'http/1.1'] })
  expect(socket.alpnProtocol).toBe('http/1.1')
  socket.destroy()
  await expect(open({ ALPNProtocols: ['h2'] })).rejects.toThrow()
})

test.each(['TLSv1.2', 'TLSv1.3'] as const)('no session is resumed with %s', async (version) => {
  const tls = { minVersion: version, maxVersion: version, secureOptions: constants.SSL_OP_ALL }
  const first = await open(tls)
  const session = await new Promise<Buffer | undefined>((resolve) => {
    first.once('session', resolve)
    first.once('close', () => resolve(first.getSession()))
    first.end('GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    first.resume()
  })
  const second = await open({ ...tls, ...(session && { session }) })
  expect(second.isSessionReused()).toBe(false)
  second.destroy()
})

test('another certificate is shown to new connections, while open ones go on', async () => {
  const before = await open()
  const { keyPem, pem } = await makeCertificate('renewed')
  gateway.renew({ keyPem, chainPem: pem })
  const after = await open()
  expect([before, after].map((socket) => socket.getPeerCertificate().subject.CN)).toEqual([
    'localhost',
    'renewed',
  ])
  for (const socket of [before, after]) socket.destroy()
})

test('running requests are finished at the end, and their connections closed', async () => {
  const other = await startGateway()
  let release: () => void = () => undefined
  const reached = new Promise<void>((resolve) => {
    other.fakes.instead.set('policy.entities.get', async () => {
      resolve()
      await new Promise<void>((go) => {
        release = go
      })
      return { json: Buffer.from('{}') }
    })
  })
  const running = other.request('/edge/management/v1/services/x', { token: ADMIN })
  await reached
  const ended = other[Symbol.asyncDispose]()
  await expect(open({}, other.port)).rejects.toThrow()
  release()
  expect((await running).status).toBe(200)
  await ended
})

test('clients that send one request after the other lose none, and are asked to change their connection', async () => {
  const ending = await startGateway({ changeMs: 60_000 })
  const { port } = ending
  let answers = 0
  const send = (agent: Agent) =>
    new Promise<boolean>((resolve, reject) => {
      const request = get({ host: '127.0.0.1', port, path: '/version', agent }, (response) => {
        answers++
        response.resume().on('end', () => resolve(response.headers.connection === 'close'))
      })
      request.on('error', reject)
    })
  const clients = Array.from({ length: 20 }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
    while (!(await send(agent))); // the answer asks for another connection
    agent.destroy()
  })
  await expect.poll(() => answers).toBeGreaterThan(100)
  await ending[Symbol.asyncDispose]()
  await Promise.all(clients)
})

test.each([
  ['when the time for a change is over', { changeMs: 1 }, () => undefined],
  [
    'soon where there is no other gateway',
    { changeMs: 600_000, idleMs: 600_000 },
    ({ hurry }: TestGateway) => hurry(),
  ],
] as const)('a connection without another request is closed %s', async (_when, limits, prepare) => {
  const ending = await startGateway(limits)
  const socket = await open({}, ending.port)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.resume().write('GET /version HTTP/1.1\r\nhost: x\r\n\r\n')
  await once(socket, 'data')
  prepare(ending)
  await ending[Symbol.asyncDispose]()
  await closed
})

test('a request that does not end is cut off when its time is over', async () => {
  const other = await startGateway({ drainMs: 50 })
  const reached = new Promise<void>((resolve) => {
    other.fakes.instead.set('policy.entities.get', () => {
      resolve()
      return new Promise(() => undefined)
    })
  })
  const running = other.request('/edge/management/v1/services/x', { token: ADMIN })
  const cut = expect(running).rejects.toThrow()
  await reached
  await other[Symbol.asyncDispose]()
  await cut
})
