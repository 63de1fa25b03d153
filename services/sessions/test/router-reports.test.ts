import {
  Alerts,
  contentType,
  ctrlType,
  decodeBool,
  edgeType,
  headerKey,
  LinkListeners,
  LinkState,
  PeerStateChanges,
  RouterLinks,
  UpdateRouterInterfaces,
} from '@overlay/channel'
import { EVENT_SUBJECT, type FabricEvent } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { interfacesOfRouters } from '../src/store/router-interfaces.js'
import { type Replica, startControlNetwork, type TestNetwork } from './control.js'
import { connectRouter, groupedHello, type TestRouter } from './test-router.js'

let network: TestNetwork
let replica: Replica
beforeAll(async () => {
  network = await startControlNetwork({ hasBus: true })
  replica = await network.replica('one')
})
afterAll(() => network[Symbol.asyncDispose]())

async function connect(name: string): Promise<TestRouter & { readonly id: string }> {
  const key = await network.createRouter(name)
  const router = await connectRouter({ port: replica.port, key, headers: groupedHello })
  await router.message(edgeType.serverHello)
  return { ...router, id: key.id }
}

const eth0 = {
  ...{ name: 'eth0', hardwareAddress: '02:42:ac:11:00:02', mtu: 1500n, index: 2n, flags: 51n },
  addresses: ['10.0.0.1/24'],
}

test('interfaces are stored and answered, and a later report replaces them', async () => {
  const router = await connect('interfaces')
  const report = async (...names: string[]) => {
    const interfaces = names.map((name) => ({ ...eth0, name }))
    const body = UpdateRouterInterfaces.encode({ interfaces }).finish()
    const answer = await router.channel.request({ type: ctrlType.updateRouterInterfaces, body }, 30_000)
    expect(answer.type).toBe(contentType.result)
    expect(decodeBool(answer.headers.get(headerKey.resultSuccess) ?? Buffer.alloc(0))).toBe(true)
    const stored = (await interfacesOfRouters(network.db, [router.id])).get(router.id)
    return stored?.map(({ name, isUp, isLoopback }) => [name, isUp, isLoopback])
  }
  expect(await report('eth0', 'eth1')).toEqual([
    ['eth0', true, false],
    ['eth1', true, false],
  ])
  expect(await report('<b>')).toHaveLength(2)
  expect(await report('eth0')).toHaveLength(1)
})

test('alerts become events', async () => {
  const router = await connect('alerts')
  const events: FabricEvent[] = []
  using _events = replica.bus.subscribe(`${EVENT_SUBJECT}.alert`, (event) =>
    events.push(event as FabricEvent),
  )
  const texts = { sourceType: 'self', sourceId: '', severity: 'error', message: 'no listener' }
  const alert = { ...texts, timestamp: 1n, details: [], relatedEntities: new Map() }
  await expect
    .poll(() => {
      router.channel.send({ type: ctrlType.alerts, body: Alerts.encode({ alerts: [alert] }).finish() })
      return events[0]
    })
    .toMatchObject({
      namespace: 'alert',
      event_src_id: 'one',
      alert_source_id: router.id,
      message: 'no listener',
    })
})

test('the newest state of the connections of a link is shown, and only its dialer reports it', async () => {
  const [dialer, listener] = [await connect('dialer'), await connect('listener')]
  const state = (stateIteration: number, ...types: string[]) => ({
    stateIteration,
    connections: types.map((type) => ({ type, localAddress: '10.0.0.1:1', remoteAddress: '10.0.0.2:2' })),
  })
  const link = {
    ...{ id: 'l1', destinationRouterId: listener.id, protocol: 'tls', dialAddress: 'tls:10.0.0.2:2' },
    ...{ costTags: [], iteration: 1, connections: state(2, 'single') },
  }
  const body = RouterLinks.encode({ links: [link], fullRefresh: true }).finish()
  dialer.channel.send({ type: ctrlType.routerLinks, body })
  const report = async (router: TestRouter, iteration: number, connections: ReturnType<typeof state>) => {
    const changed = LinkState.encode({ linkId: 'l1', linkIteration: iteration, connections }).finish()
    router.channel.send({ type: ctrlType.linkState, body: changed })
    await router.channel.request({ type: contentType.ping }, 30_000)
  }
  const shown = async () => {
    const { rows } = await network.db.query<{
      connections: { type: string; source: string; dest: string }[]
    }>(sql`select connections from link_view where id = 'l1'`)
    return rows[0]?.connections
  }
  const [source, dest] = ['10.0.0.1:1', '10.0.0.2:2']
  await expect.poll(shown).toEqual([{ type: 'single', source, dest }])
  await report(listener, 1, state(9, 'forged'))
  await report(dialer, 1, state(1, 'late'))
  await report(dialer, 2, state(3, 'next'))
  await report(dialer, 1, state(3, 'payload', 'ack'))
  await expect.poll(shown).toEqual([
    { type: 'payload', source, dest },
    { type: 'ack', source, dest },
  ])
})

test('link listeners that change while a router is connected are announced to the others', async () => {
  const [router, peer] = [await connect('changing'), await connect('peer')]
  const listeners = [
    { address: 'tls:10.0.0.9:6000', protocol: 'tls', costTags: [], groups: ['default'], localBinding: '' },
  ]
  const changes = () =>
    peer.received
      .filter(({ type }) => type === ctrlType.peerStateChanges)
      .flatMap(({ body }) => PeerStateChanges.decode(body).changes)
      .filter(({ id }) => id === router.id)
      .map(({ listeners: all }) => all.map(({ address }) => address))
  const send = (all: typeof listeners) =>
    router.channel.send({
      type: ctrlType.linkListeners,
      body: LinkListeners.encode({ listeners: all }).finish(),
    })
  send(listeners)
  await expect.poll(changes).toEqual([['tls:10.0.0.9:6000']])
  send(listeners.map((listener) => ({ ...listener, address: 'not an address' })))
  send([])
  await expect.poll(changes).toEqual([['tls:10.0.0.9:6000'], []])
})
