import { contentType, ctrlType, edgeType, MESSAGE_LIMITS } from '@overlay/channel'
import { metrics } from '@overlay/process'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Replica, startControlNetwork, type TestNetwork } from './control.js'
import { connectRouter, type RouterKey, untilClosed } from './test-router.js'

let network: TestNetwork
let replica: Replica
beforeAll(async () => {
  network = await startControlNetwork()
  replica = await network.replica()
})
afterAll(() => network[Symbol.asyncDispose]())

const connect = async (key: RouterKey) => connectRouter({ port: replica.port, key })
const endsOf = async (reason: string): Promise<number> =>
  (await metrics.routersDisconnected.get()).values.find(({ labels }) => labels.reason === reason)?.value ?? 0
const ping = { type: contentType.ping }

/** Two routers; what one does must not concern the other. */
async function connectTwo(name: string) {
  return [
    await connect(await network.createRouter(`${name} 1`)),
    await connect(await network.createRouter(`${name} 2`)),
  ] as const
}

test('routers that come all at once are all admitted', async () => {
  const key = await network.createRouter('many')
  const ids = Array.from({ length: 150 }, (_, at) => `many-${at}`)
  await network.db.query(sql`
    insert into router (id, name, is_edge, is_verified, fingerprint)
    select id, id, true, true, ${key.fingerprint} from unnest(${ids}::text[]) as id`)
  const late = await network.replica('late')
  const routers = await Promise.all(
    ids.map(async (id) => connectRouter({ port: late.port, key: { ...key, id } })),
  )
  await Promise.all(routers.map((router) => router.message(edgeType.serverHello)))
  expect([...late.control.channels.all()]).toHaveLength(ids.length)
  await late[Symbol.asyncDispose]()
})

test.each([
  ['bytes that are no message', Buffer.alloc(64, 1)],
  ['a message beyond the limits', Buffer.from('0306090c00000000010000000000000000ffffff', 'hex')],
])('%s: that channel is closed, others are not', async (what, bytes) => {
  const [bad, good] = await connectTwo(what)
  const before = await endsOf('malformed')
  bad.socket.write(bytes)
  await untilClosed(bad)
  await good.channel.request(ping, 30_000)
  expect(await endsOf('malformed')).toBe(before + 1)
})

test('metrics that are too large to decode are dropped and counted, and the channel stays', async () => {
  const [router] = await connectTwo('large')
  const oversized = async (): Promise<number> => {
    const { values } = await metrics.routerMessages.get()
    const type = String(ctrlType.metrics)
    return values.find(({ labels }) => labels.type === type && labels.result === 'oversized')?.value ?? 0
  }
  const before = await oversized()
  router.channel.send({ type: ctrlType.metrics, body: Buffer.alloc(MESSAGE_LIMITS.bodyBytes + 1) })
  await router.channel.request(ping, 30_000)
  await expect.poll(oversized).toBe(before + 1)
})

test('a malformed body closes the channel, and is counted by its type', async () => {
  const [bad, good] = await connectTwo('body')
  metrics.routerMessages.reset()
  bad.channel.send({ type: edgeType.clientHello, body: Buffer.of(0x0a, 0x7f) })
  await untilClosed(bad)
  await good.channel.request(ping, 30_000)
  const { values } = await metrics.routerMessages.get()
  const counted = values.find(({ labels }) => labels.result === 'malformed')
  expect(counted).toMatchObject({ labels: { type: String(edgeType.clientHello) }, value: 1 })
})

test('messages of unknown types are dropped', async () => {
  const [router] = await connectTwo('unknown')
  const dropped = async (): Promise<number> => {
    const { values } = await metrics.routerMessages.get()
    return values.find(({ labels }) => labels.result === 'dropped')?.value ?? 0
  }
  const before = await dropped()
  router.channel.send({ type: 12_345, body: Buffer.from('?') })
  await router.channel.request(ping, 30_000)
  expect(await dropped()).toBe(before + 1)
})

test('a router that floods its channel does not keep others from being answered', async () => {
  const [loud, good] = await connectTwo('flood')
  const body = Buffer.alloc(1000)
  for (let sent = 0; sent < 10_000; sent++) loud.channel.send({ type: 12_345, body })
  await good.channel.request(ping, 30_000)
  await loud.channel.request(ping, 30_000)
})

test('a router that does not read loses its channel when too much is queued for it', async () => {
  const key = await network.createRouter('stalled')
  const [stalled, good] = [await connect(key), await connect(await network.createRouter('reading'))]
  const before = await endsOf('stalled')
  stalled.socket.pause()
  const own = replica.control.channels.get(key.id)
  while (own && !own.channel.closed.aborted) own.channel.send({ type: 12_345, body: Buffer.alloc(1 << 20) })
  expect(own).toBeDefined()
  expect(await endsOf('stalled')).toBe(before + 1)
  await good.channel.request(ping, 30_000)
})
