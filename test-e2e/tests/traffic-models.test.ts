import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { differences } from '../../packages/channel/testing/model-contents.js'
import { logInByOpenId } from '../member.js'
import { startRouter, type TestRouter } from '../router/router.js'
import { exchange, openSession, startTraffic, type Traffic, until } from '../traffic.js'

let traffic: Traffic
beforeAll(async () => {
  traffic = await startTraffic({ sessions: 2, policies: 2 })
})
afterAll(() => traffic[Symbol.asyncDispose]())

/** A 2.0 router that has its model. */
async function modelled(name: string): Promise<TestRouter> {
  const router = await traffic.router(name, { line: '2.0', closeWaitMs: 500 })
  await until(() => router.controllers.all().length === 2 && router.model.index > 0n)
  return router
}

/** Resolves when the router knows the service. */
const untilKnown = (serviceId: string, { model }: TestRouter): Promise<boolean> =>
  until(() => model.contents.service.has(serviceId))

const sent = randomBytes(100_000)

test('a router whose replica is killed goes on with another one, from the index that it has', async () => {
  const router = await modelled('moving')
  const { serviceId } = await traffic.hosted('moving', router)
  const stored = await traffic.dialed(serviceId, router)
  const { id, certificate } = await traffic.member('by-token', 'client')
  const member = await logInByOpenId(traffic.server, id, certificate)
  const sdk = await traffic.connect(member, router)
  const session = await openSession(member, serviceId, 'Dial')
  const connection = await sdk.dial(session.token)
  expect((await exchange(connection, sent)).equals(sent)).toBe(true)
  const received = { ...router.model.received }

  const killed = router.model.source ?? ''
  const pid = traffic.network.processes.get(killed)?.pid()
  if (pid === undefined) throw new Error(`there is no process ${killed}`)
  process.kill(pid, 'SIGKILL')
  await until(() => router.model.source !== undefined && router.model.source !== killed)
  await untilKnown(await traffic.service('after-the-move'), router)
  expect(router.model.received.fullStates).toBe(received.fullStates)

  for (const one of [stored.connection, connection, await sdk.dial(session.token)])
    expect((await exchange(one, sent)).equals(sent)).toBe(true)
  const again = await until(() => stored.sdk.dial(stored.session.token).catch(() => undefined))
  expect((await exchange(again, sent)).equals(sent)).toBe(true)
  for (const identity of [member, stored.member])
    await traffic.admin.request('PATCH', `/identities/${identity.id}`, { roleAttributes: [] })
  await Promise.all([connection.ended, stored.connection.ended])
})

test('a router that starts again with its model receives the changes only', async () => {
  const serviceId = await traffic.service('stored')
  const router = await modelled('stored')
  await untilKnown(serviceId, router)
  const { identity, model } = router
  const { index, timeline, contents } = model
  await router[Symbol.asyncDispose]()
  // links that the router may have already are not sent again: another service would cost a full state
  await traffic.admin.request('PATCH', `/services/${serviceId}`, { name: 'renamed' })
  const member = await traffic.member('enrolled-meanwhile', 'client')
  const again = await traffic.start({ identity, line: '2.0', storedModel: { index, timeline, contents } })
  await until(() => again.model.contents.service.get(serviceId)?.name === 'renamed')
  await until(() => again.model.contents.identity.has(member.id))
  expect(again.model.received.fullStates).toBe(0)
})

test.each([
  ['of another database', { timeline: 'another' }],
  ['of an index that does not exist', { index: 2n ** 60n }],
])('a router with a model %s receives a full state', async (_what, wrong) => {
  const router = await modelled(`wrong-${Object.keys(wrong)}`)
  const { identity, model } = router
  const { index, timeline, contents } = model
  await router[Symbol.asyncDispose]()
  const storedModel = { index, timeline, contents, ...wrong }
  // not of the traffic, because an index that goes back breaks a rule
  await using again = await startRouter({
    identity,
    line: '2.0',
    storedModel,
    controllers: traffic.network.controllers,
  })
  await until(() => again.model.received.fullStates === 1)
  await untilKnown(await traffic.service(`after-${Object.keys(wrong)}`), again)
  expect(again.model.timeline).toBe(timeline)
})

test('routers with equal scopes have equal models, however they came to them', async () => {
  const first = await modelled('first')
  const { admin } = traffic
  const serviceId = await traffic.service('changing')
  const changing = await traffic.member('changing', 'client')
  const check = await admin.create('posture-checks', {
    name: 'changing',
    typeId: 'DOMAIN',
    domains: ['a.example'],
    roleAttributes: ['changing'],
  })
  const types = await admin.request<{ id: string }[]>('GET', '/config-types?filter=name="host.v1"')
  const data = { protocol: 'tcp', address: 'localhost', port: 1 }
  const config = await admin.create('configs', { name: 'changing', configTypeId: types[0]?.id, data })
  const [policy] = await admin.request<{ id: string }[]>(
    'GET',
    '/service-policies?filter=name="changing-dial"',
  )
  const changes: [string, string, object][] = [
    ['PATCH', `/services/${serviceId}`, { configs: [config] }],
    ['PATCH', `/service-policies/${policy?.id}`, { postureCheckRoles: ['#changing'] }],
    ['PATCH', `/identities/${changing.id}`, { roleAttributes: [] }],
    ['PATCH', `/posture-checks/${check}`, { domains: ['b.example'], typeId: 'DOMAIN' }],
    ['PATCH', `/identities/${changing.id}`, { roleAttributes: ['client', 'host'] }],
    ['PATCH', `/service-policies/${policy?.id}`, { postureCheckRoles: [] }],
    ['PATCH', `/services/${serviceId}`, { name: 'changed', configs: [] }],
    ['PATCH', `/service-policies/${policy?.id}`, { serviceRoles: [] }],
    ['PATCH', `/service-policies/${policy?.id}`, { serviceRoles: ['#all'] }],
  ]
  for (const [method, path, body] of changes) {
    await admin.request(method, path, body)
    await until(() => first.model.received.changeSets > 0)
  }
  await admin.request('DELETE', `/posture-checks/${check}`)
  await admin.request('DELETE', `/configs/${config}`)
  await admin.request('DELETE', `/identities/${changing.id}`)
  const second = await modelled('second')
  await expect.poll(() => differences(second.model.contents, first.model.contents)).toEqual([])
  expect(first.model.contents.service.get(serviceId)?.name).toBe('changed')
  expect(first.model.contents.identity.has(changing.id)).toBe(false)
})
