import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TestRouter } from '../router/router.js'
import { exchange, openSession, startTraffic, type Traffic, until } from '../traffic.js'

const MEGABYTE = 1024 * 1024

let traffic: Traffic
let [near, far, third]: TestRouter[] = []
beforeAll(async () => {
  traffic = await startTraffic({ shared: true })
  near = await traffic.router('near', { hasLinks: true, closeWaitMs: 1000 })
  far = await traffic.router('far', { hasLinks: true, closeWaitMs: 1000 })
})
afterAll(() => traffic[Symbol.asyncDispose]())

const router = (one: TestRouter | undefined): TestRouter => {
  if (!one) throw new Error('there is no router')
  return one
}
const terminatorsOf = (serviceId: string) =>
  traffic.admin.request<{ routerId: string; binding: string; cost: number; precedence: string }[]>(
    'GET',
    `/terminators?filter=service="${serviceId}"`,
  )

test('a hosted service has a terminator until it is unbound', async () => {
  const serviceId = await traffic.service('unbound')
  const member = await traffic.member('unbound-host', 'host')
  const sdk = await traffic.connect(member, router(near))
  const { token } = await openSession(member, serviceId, 'Bind')
  const hosted = await sdk.host(token, { cost: 7, precedence: 1 })
  expect(await terminatorsOf(serviceId)).toMatchObject([
    { routerId: near?.id, binding: 'edge', cost: 7, precedence: 'required' },
  ])
  hosted.unbind()
  await until(async () => (await terminatorsOf(serviceId)).length === 0)
})

test('the terminators of an application are removed with its connection', async () => {
  const { sdk, serviceId } = await traffic.hosted('disconnected', router(near))
  await sdk[Symbol.asyncDispose]()
  await until(async () => (await terminatorsOf(serviceId)).length === 0)
})

test('a circuit on one router carries data, and ends with its connection', async () => {
  const { serviceId } = await traffic.hosted('one-router', router(near))
  const { connection, session } = await traffic.dialed(serviceId, router(near))
  const sent = randomBytes(MEGABYTE)
  expect((await exchange(connection, sent)).equals(sent)).toBe(true)
  expect(await traffic.routePath(session)).toEqual([near?.id])
  connection.destroy()
  await until(async () => (await traffic.routePath(session)).length === 0)
  await until(() => near?.circuits().length === 0)
})

test('a circuit over a link carries data', async () => {
  await until(() => near?.links?.all().some(({ peerId }) => peerId === far?.id))
  const { serviceId } = await traffic.hosted('two-routers', router(far))
  const { connection, session } = await traffic.dialed(serviceId, router(near))
  const sent = randomBytes(MEGABYTE)
  expect((await exchange(connection, sent)).equals(sent)).toBe(true)
  expect(await traffic.routePath(session)).toEqual([near?.id, far?.id])
})

test('a circuit whose link is lost moves to another path, without loss', async () => {
  third = await traffic.router('third', { hasLinks: true })
  await until(() => third?.links?.all().length === 2)
  await until(() => near?.links?.all().some(({ peerId }) => peerId === far?.id))
  const { serviceId } = await traffic.hosted('moved', router(far))
  const { connection, session } = await traffic.dialed(serviceId, router(near))
  expect(await traffic.routePath(session)).toEqual([near?.id, far?.id])
  const sent = randomBytes(10 * MEGABYTE)
  const echo = exchange(connection, sent)
  near?.links?.cut(far?.id ?? '')
  expect((await echo).equals(sent)).toBe(true)
  expect(await traffic.routePath(session)).toEqual([near?.id, third.id, far?.id])
  near?.links?.restore(far?.id ?? '')
})

test('a dial without a terminator is refused with a reason', async () => {
  const serviceId = await traffic.service('not-hosted')
  await expect(traffic.dialed(serviceId, router(near))).rejects.toThrow('has no terminators')
})
