import { randomBytes } from 'node:crypto'
import {
  CircuitConfirmation,
  CreateFabricTerminatorRequest,
  ctrlType,
  decodeBool,
  Fault,
  FaultSubject,
  headerKey,
  type RouterLink,
  RouterLinks,
  TerminatorPrecedence,
  UpdateFabricTerminatorRequest,
} from '@overlay/channel'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Client, openClient } from '../client.js'
import { enrollRouter } from '../router/identity.js'
import { startRouter, type TestRouter } from '../router/router.js'
import { exchange, type Hosted, startTraffic, type Traffic, until } from '../traffic.js'

const ANSWER_MS = 30_000

let traffic: Traffic
let fabric: Client
let near: TestRouter
let far: TestRouter
let hostile: TestRouter
let transit: TestRouter
let hosted: Hosted
beforeAll(async () => {
  traffic = await startTraffic()
  const { network, admin, server } = traffic
  fabric = openClient(server, '/fabric/v1')
  const login = { username: 'admin', password: 'correct horse' }
  using anonymous = openClient(server, '/edge/management/v1')
  const { token } = await anonymous.request<{ token: string }>('POST', '/authenticate?method=password', login)
  fabric.use(token)
  near = await traffic.router('near', { hasLinks: true })
  far = await traffic.router('far', { hasLinks: true })
  hostile = await traffic.router('hostile')
  const identity = await enrollRouter(admin, server, { name: 'transit' }, 'transit-routers')
  transit = await startRouter({ identity, controllers: network.controllers, listens: false })
  await until(() => transit.controllers.any())
  await until(async () => (await links()).some(({ state }) => state === 'Connected'))
  hosted = await traffic.hosted('wiki', far)
})
afterAll(async () => {
  fabric?.[Symbol.dispose]()
  await transit?.[Symbol.asyncDispose]()
  await traffic[Symbol.asyncDispose]()
})

interface ListedLink {
  readonly id: string
  readonly state: string
}

const links = () => fabric.request<readonly ListedLink[]>('GET', '/links')
const terminators = () =>
  traffic.admin.request<readonly { id: string; routerId: string; precedence: string }[]>(
    'GET',
    `/terminators?filter=service="${hosted.serviceId}"`,
  )

const channelOf = (router: TestRouter) => {
  const controller = router.controllers.any()
  if (!controller) throw new Error('the router is offline')
  return controller.channel
}

async function ask(router: TestRouter, type: number, body: Uint8Array) {
  const answer = await channelOf(router).request({ type, body }, ANSWER_MS)
  const success = answer.headers.get(headerKey.resultSuccess)
  return { isSuccess: success !== undefined && decodeBool(success), text: answer.body.toString() }
}

const takeOver = (router: TestRouter) =>
  ask(
    router,
    ctrlType.createTerminator,
    CreateFabricTerminatorRequest.encode(
      CreateFabricTerminatorRequest.fromPartial({
        ...{ serviceId: hosted.serviceId, binding: 'transport', address: 'tcp:127.0.0.1:6666' },
        precedence: TerminatorPrecedence.REQUIRED,
      }),
    ).finish(),
  )

const report = (router: TestRouter, link: Partial<RouterLink>) => {
  const own = { destinationRouterId: near.id, protocol: 'tls', dialAddress: 'tls:127.0.0.1:1', iteration: 1 }
  const body = RouterLinks.encode(RouterLinks.fromPartial({ links: [{ ...own, ...link }] })).finish()
  channelOf(router).send({ type: ctrlType.routerLinks, body })
}

/** A dial reaches the rightful host. */
async function expectRightfulHost(): Promise<void> {
  const before = hosted.accepted.length
  const { connection } = await traffic.dialed(hosted.serviceId, near)
  const sent = randomBytes(1000)
  expect(await exchange(connection, sent)).toEqual(sent)
  expect(hosted.accepted).toHaveLength(before + 1)
  connection.destroy()
}

test('a router without a right to a service cannot take it over', async () => {
  report(hostile, { id: 'attractive' })
  await until(async () => (await links()).some(({ id }) => id === 'attractive'))
  expect(await takeOver(hostile)).toEqual({ isSuccess: false, text: 'the router may not host this service' })
  await expectRightfulHost()
  expect(await terminators()).toMatchObject([{ routerId: far.id }])
})

test('a transit router hosts nothing, not even beside a terminator of an administrator', async () => {
  const { serviceId: service } = hosted
  const address = { binding: 'transport', address: 'tcp:127.0.0.1:6666', precedence: 'failed' }
  const id = await traffic.admin.create('terminators', { service, router: transit.id, ...address })
  expect(await takeOver(transit)).toEqual({ isSuccess: false, text: 'a transit router hosts no services' })
  await traffic.admin.request('DELETE', `/terminators/${id}`)
  expect(await terminators()).toMatchObject([{ routerId: far.id }])
})

test('a router hosts a service beside a terminator of an administrator, as long as that exists', async () => {
  const { serviceId: service } = hosted
  const address = { binding: 'transport', address: 'tcp:127.0.0.1:6666', precedence: 'failed' }
  const id = await traffic.admin.create('terminators', { service, router: hostile.id, ...address })
  const update = { terminatorId: id, precedence: TerminatorPrecedence.REQUIRED, updatePrecedence: true }
  const body = UpdateFabricTerminatorRequest.encode(
    UpdateFabricTerminatorRequest.fromPartial(update),
  ).finish()
  expect(await ask(hostile, ctrlType.updateTerminator, body)).toEqual({
    isSuccess: false,
    text: `terminator ${id} is that of an administrator`,
  })
  expect((await takeOver(hostile)).isSuccess).toBe(true)
  expect(await terminators()).toHaveLength(3)
  await traffic.admin.request('DELETE', `/terminators/${id}`)
  await expect.poll(terminators).toMatchObject([{ routerId: far.id }])
})

test('a link that one router alone reports carries no circuits', async () => {
  report(hostile, { id: 'one-sided' })
  await until(async () => (await links()).some(({ id }) => id === 'one-sided'))
  expect(await links()).toContainEqual(expect.objectContaining({ id: 'one-sided', state: 'Pending' }))
  const { serviceId } = await traffic.hosted('unreachable', hostile)
  await expect(traffic.dialed(serviceId, near)).rejects.toThrow()
})

test('ids and addresses with markup are not stored', async () => {
  report(hostile, { id: '<script>alert(1)</script>' })
  report(hostile, { id: 'marked', dialAddress: 'tls:"><img src=x>' })
  report(hostile, { id: 'plain' })
  await until(async () => (await links()).some(({ id }) => id === 'plain'))
  expect(JSON.stringify(await links())).not.toMatch(/marked|[<>]/)
})

test('messages with millions of ids stop nothing', async () => {
  const processes = () => [...traffic.network.processes].map(([name, one]) => [name, one.pid()])
  const before = processes()
  const fault = { subject: FaultSubject.FORWARD, id: 'x '.repeat(2_000_000), iteration: 0 }
  const ids = Buffer.alloc(4_000_000, Buffer.from([0x0a, 1, 0x41]))
  expect(CircuitConfirmation.decode(ids.subarray(0, 6)).circuitIds).toEqual(['A', 'A'])
  for (let i = 0; i < 3; i++) {
    const channel = channelOf(hostile)
    channel.send({ type: ctrlType.fault, body: Fault.encode(fault).finish() })
    channel.send({ type: ctrlType.circuitConfirmation, body: ids })
    channel.send({ type: ctrlType.removeTerminators, body: ids })
    channel.send({ type: ctrlType.metrics, body: Buffer.alloc(4_000_000, Buffer.from([0x42, 0])) })
    await expectRightfulHost()
  }
  expect(processes()).toEqual(before)
})
