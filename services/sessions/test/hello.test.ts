import { encodeFrame, encodeText, headerKey, LinkListeners } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authority } from '../../identity/test/certificates.js'
import { type Replica, startControlNetwork, type TestNetwork } from './control.js'
import { type ConnectOptions, connectRouter, openSocket, untilClosed } from './test-router.js'

let network: TestNetwork
let replica: Replica
beforeAll(async () => {
  network = await startControlNetwork()
  replica = await network.replica('sessions', { helloMs: 500 })
})
afterAll(() => network[Symbol.asyncDispose]())

const refusals = async (reason: string): Promise<number> =>
  (await metrics.routersRefused.get()).values.find(({ labels }) => labels.reason === reason)?.value ?? 0

/** The controller closes the connection without an answer, and counts the reason. */
async function refuses(reason: string, options: Partial<ConnectOptions>): Promise<void> {
  const before = await refusals(reason)
  await expect(connectRouter({ port: replica.port, ...options })).rejects.toThrow('closed before the hello')
  expect(await refusals(reason)).toBe(before + 1)
}

test('a router gets a channel, whose controller has the id of the replica', async () => {
  const key = await network.createRouter('a')
  const router = await connectRouter({ port: replica.port, key })
  expect(router.hello.controllerId).toBe('sessions')
  expect(router.hello.version.version).toMatch(/^v\d+\.\d+\.\d+$/)
  expect(router.hello.headers.get(headerKey.capabilities)).toEqual(Buffer.of(0x0e))
  expect(replica.control.channels.get(key.id)?.fingerprint).toBe(key.fingerprint)
  router.channel.close('done')
})

test('a router without a certificate is refused', () => refuses('no-certificate', { id: 'r' }))

test('a certificate of another authority is refused', async () => {
  const { id } = await network.createRouter('b')
  await refuses('untrusted', { key: await network.certify(id, { issuer: await authority('root') }) })
})

test('an expired certificate is refused, though it is the one of the router', async () => {
  const key = await network.createRouter('c', { to: new Date(Date.now() - 1000) })
  await refuses('untrusted', { key })
})

test('an unknown router is refused', async () =>
  refuses('unknown-router', { key: await network.certify('nobody') }))

test('a valid certificate of another router is refused', async () => {
  const [own, other] = [await network.createRouter('d'), await network.createRouter('e')]
  await refuses('wrong-certificate', { key: other, id: own.id })
})

test('a router that has not enrolled again is refused', async () => {
  const key = await network.createRouter('f')
  await network.resetEnrollment(key.id, replica)
  await refuses('not-enrolled', { key })
})

test('a disabled router is refused until it is enabled', async () => {
  const key = await network.createRouter('g')
  await network.updateRouter(key.id, { disabled: true }, replica)
  await refuses('disabled', { key })
  await network.updateRouter(key.id, { disabled: false }, replica)
  const router = await connectRouter({ port: replica.port, key })
  router.channel.close('done')
})

test('a refused router is logged once, with its name and version, until it connects to any replica', async () => {
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  await using other = await network.replica('logging', { log })
  const key = await network.createRouter('logged')
  const ofRefusals = () => lines.filter(({ msg }) => msg === 'connection of a router refused')
  const setDisabled = async (disabled: boolean) => {
    await network.updateRouter(key.id, { disabled }, other)
    await expect.poll(() => replica.directory.get(key.id)?.disabled).toBe(disabled)
  }
  const isRefused = () =>
    expect(connectRouter({ port: other.port, key })).rejects.toThrow('closed before the hello')
  await setDisabled(true)
  await isRefused()
  await isRefused()
  const facts = { level: 40, routerId: key.id, name: 'logged', version: 'v1.1.13', reason: 'disabled' }
  expect(ofRefusals()).toEqual([expect.objectContaining(facts)])
  await setDisabled(false)
  const router = await connectRouter({ port: replica.port, key })
  await expect.poll(() => other.control.presence.isOnline(key.id)).toBe(true)
  router.channel.close('done')
  await setDisabled(true)
  await isRefused()
  expect(ofRefusals()).toHaveLength(2)
})

test('a peer of another type is refused', async () => {
  const key = await network.createRouter('h')
  await refuses('not-a-router', { key, headers: [[headerKey.type, encodeText('ctrl.mesh')]] })
})

test.each([
  ['link listeners that cannot be decoded', headerKey.listeners, Buffer.of(0x0a)],
  ['a link listener without a valid address', headerKey.listeners, listenerAt('tls:<script>')],
  ['a version with NUL', headerKey.version, encodeText('v1.1.13\0|r|d|o|a')],
  ['a version with markup', headerKey.version, encodeText('v1.1.13|r|d|<img src=x>|a')],
])('a hello with %s is refused', async (what, header, value) => {
  const key = await network.createRouter(what)
  await refuses('malformed', { key, headers: [[header, value]] })
})

test('a router that sends no version comes online', async () => {
  const key = await network.createRouter('without version')
  const socket = await openSocket({ port: replica.port, key })
  socket.resume()
  socket.write(encodeFrame(0, -1, [], encodeText(key.id)))
  await expect.poll(() => replica.control.presence.isOnline(key.id)).toBe(true)
  socket.destroy()
})

test('a peer that sends no hello is refused in time', async () => {
  const key = await network.createRouter('i')
  const before = await refusals('no-hello')
  const socket = await openSocket({ port: replica.port, key })
  socket.resume()
  await new Promise((resolve) => socket.once('close', resolve))
  expect(await refusals('no-hello')).toBe(before + 1)
})

test.each([
  ['bytes that are no message', Buffer.from('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')],
  ['a hello that is too large', encodeFrame(0, -1, [[99, Buffer.alloc(17_000)]], Buffer.from('r'))],
])('%s: the connection is closed', async (_what, bytes) => {
  const key = await network.createRouter(`malformed ${bytes.length}`)
  const socket = await openSocket({ port: replica.port, key })
  socket.resume()
  socket.write(bytes)
  await new Promise((resolve) => socket.once('close', resolve))
})

test('a newer connection of a router replaces the older one', async () => {
  const key = await network.createRouter('j')
  const first = await connectRouter({ port: replica.port, key })
  const closed = untilClosed(first)
  const second = await connectRouter({ port: replica.port, key })
  await closed
  expect(replica.control.presence.isOnline(key.id)).toBe(true)
  expect(second.channel.closed.aborted).toBe(false)
  second.channel.close('done')
})

test('connections that keep replacing each other are refused, and the last one stays', async () => {
  const key = await network.createRouter('k')
  const connect = () => connectRouter({ port: replica.port, key })
  const routers = [await connect(), await connect(), await connect(), await connect()]
  await refuses('contested', { key })
  expect(routers.map(({ channel }) => channel.closed.aborted)).toEqual([true, true, true, false])
  routers[3]?.channel.close('done')
})

function listenerAt(address: string): Buffer {
  const listener = { address, protocol: 'tls', costTags: [], groups: ['default'], localBinding: '' }
  return Buffer.from(LinkListeners.encode({ listeners: [listener] }).finish())
}
