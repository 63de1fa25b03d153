import type { TLSSocket } from 'node:tls'
import { contentType, ctrlType, edgeType, encodeFrame, encodeVersion, headerKey } from '@overlay/channel'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendHello } from '../../packages/channel/testing/send-hello.js'
import { ownCertificate } from '../member.js'
import { connectTls } from '../router/controllers.js'
import { enrollRouter, type RouterIdentity } from '../router/identity.js'
import { versionOf } from '../router/lines.js'
import type { TestRouter } from '../router/router.js'
import { untilClosed } from '../router/until-closed.js'
import { startTraffic, type Traffic, until } from '../traffic.js'

let traffic: Traffic
let bystander: TestRouter
let identity: RouterIdentity
beforeAll(async () => {
  traffic = await startTraffic({ shared: true })
  bystander = await traffic.router('bystander')
  identity = await enrollRouter(traffic.admin, traffic.server, { name: 'malformed' })
})
afterAll(() => traffic[Symbol.asyncDispose]())

const HELLO_MS = 10_000
const noBody = Buffer.alloc(0)

const connect = (as: Pick<RouterIdentity, 'client' | 'caPem'> = identity): Promise<TLSSocket> =>
  connectTls(traffic.network.controllers[0] ?? '', as)

const greet = (socket: TLSSocket, routerId = identity.id) =>
  sendHello(
    socket,
    { routerId, headers: new Map([[headerKey.version, encodeVersion(versionOf('1.1'))]]) },
    HELLO_MS,
  )

const channelOf = (router: TestRouter) => router.controllers.any()?.channel

/** Connects as a router, sends these bytes, and waits for the end of the connection. */
async function sendAfterHello(bytes: Buffer): Promise<void> {
  const socket = await connect()
  const channel = (await greet(socket)).open({ onMessage: () => undefined })
  socket.write(bytes)
  await untilClosed(channel)
}

const malformed: [string, Buffer][] = [
  ['bytes that are no frame', Buffer.alloc(64, 'x')],
  ['a frame with a body that is too large to skip', oversized()],
]

function oversized(): Buffer {
  const frame = Buffer.from(encodeFrame(ctrlType.fault, 1, [], noBody))
  frame.writeUInt32LE(64 * 1024 * 1024 + 1, 16)
  return frame
}

test.for(malformed)('%s close the channel of their router only', async ([, bytes]) => {
  const before = channelOf(bystander)
  await sendAfterHello(bytes)
  expect(channelOf(bystander)).toBe(before)
  const again = (await greet(await connect())).open({ onMessage: () => undefined })
  again.close('works again')
})

test('malformed bodies of any type leave other routers alone', async () => {
  const before = channelOf(bystander)
  const { decommissionRouter, ...types } = { ...ctrlType, ...edgeType } // it has no body, and deletes its router
  for (const type of Object.values(types)) {
    const channel = (await greet(await connect())).open({ onMessage: () => undefined })
    channel.send({ type, body: Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]) })
    await channel.request({ type: contentType.ping }, HELLO_MS).catch(() => undefined) // answered, or closed
    channel.close('done')
  }
  expect(channelOf(bystander)).toBe(before)
})

test('a router with the certificate of another one is refused', async () => {
  await expect(greet(await connect(bystander.identity))).rejects.toThrow('closed before the hello')
})

test('a certificate of another authority is refused', async () => {
  const stranger = { client: await ownCertificate(), caPem: identity.caPem }
  await expect(greet(await connect(stranger))).rejects.toThrow('closed before the hello')
})

test('a router that is enrolled again loses its channel, and its former certificate', async () => {
  const router = await traffic.router('re-enrolled')
  await traffic.admin.request('POST', `/edge-routers/${router.id}/re-enroll`)
  await until(() => router.controllers.all().length === 0)
  await expect(greet(await connect(router.identity), router.id)).rejects.toThrow('closed before the hello')
})

test('a deleted router loses its channel', async () => {
  const router = await traffic.router('deleted')
  await traffic.admin.request('DELETE', `/edge-routers/${router.id}`)
  await until(() => router.controllers.all().length === 0)
  await expect(greet(await connect(router.identity), router.id)).rejects.toThrow('closed before the hello')
})
