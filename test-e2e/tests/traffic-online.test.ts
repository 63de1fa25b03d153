import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTraffic, type Traffic, until } from '../traffic.js'

let traffic: Traffic
beforeAll(async () => {
  traffic = await startTraffic({ shared: true })
})
afterAll(() => traffic[Symbol.asyncDispose]())

test('an enrolled router comes online on both APIs', async () => {
  const router = await traffic.router('online')
  const state = () => traffic.admin.request<{ syncStatus: string }>('GET', `/edge-routers/${router.id}`)
  await until(async () => (await state()).syncStatus === 'SYNC_DONE')
  expect(await state()).toMatchObject({
    isOnline: true,
    hostname: 'localhost',
    supportedProtocols: { tls: router.url },
    versionInfo: { version: 'v1.1.13', os: 'linux', arch: 'amd64' },
  })
  const alice = await traffic.member('alice')
  const values = { hostname: 'localhost', cost: 0, noTraversal: false, disabled: false }
  expect(await alice.request('GET', '/current-identity/edge-routers')).toMatchObject([
    { id: router.id, isOnline: true, supportedProtocols: { tls: router.url }, ...values },
  ])
})

test('a disabled router goes offline immediately, and comes back when it is enabled', async () => {
  const router = await traffic.router('disabled')
  const state = () => traffic.admin.request<{ isOnline: boolean }>('GET', `/edge-routers/${router.id}`)
  await traffic.admin.request('PATCH', `/edge-routers/${router.id}`, { disabled: true })
  expect(await state()).toMatchObject({ isOnline: false })
  await until(() => router.controllers.all().length === 0)
  await traffic.admin.request('PATCH', `/edge-routers/${router.id}`, { disabled: false })
  await until(async () => (await state()).isOnline)
})
