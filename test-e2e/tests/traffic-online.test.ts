import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTraffic, type Traffic, until } from '../traffic.js'

let traffic: Traffic
beforeAll(async () => {
  traffic = await startTraffic({ shared: true })
})
afterAll(() => traffic[Symbol.asyncDispose]())

test.each([
  ['1.1', 'v1.1.13'],
  ['1.6', 'v1.6.20'],
  ['2.0', 'v2.0.3'],
] as const)('an enrolled router of %s comes online on both APIs', async (line, version) => {
  const router = await traffic.router(`online-${version}`, { line })
  const state = () => traffic.admin.request<{ syncStatus: string }>('GET', `/edge-routers/${router.id}`)
  await until(async () => (await state()).syncStatus === 'SYNC_DONE')
  expect(await state()).toMatchObject({
    isOnline: true,
    hostname: 'localhost',
    supportedProtocols: { tls: router.url },
    versionInfo: { version, os: 'linux', arch: 'amd64' },
  })
  const alice = await traffic.member(`alice-${version}`)
  const values = { hostname: 'localhost', cost: 0, noTraversal: false, disabled: false }
  expect(await alice.request('GET', '/current-identity/edge-routers')).toContainEqual(
    expect.objectContaining({
      id: router.id,
      isOnline: true,
      supportedProtocols: { tls: router.url },
      ...values,
    }),
  )
})

test('a router of 2.0 reports its interfaces', async () => {
  const router = await traffic.router('reporting', { line: '2.0' })
  const { admin } = traffic
  const interfaces = async () =>
    (await admin.request<{ interfaces: object[] }>('GET', `/edge-routers/${router.id}`)).interfaces
  await expect.poll(interfaces).toMatchObject([{ name: 'lo', isUp: true, isLoopback: true, mtu: 65536 }])
})

test('a router of 2.0 connects again as it was connected', async () => {
  const router = await traffic.router('again', { line: '2.0' })
  const former = router.controllers.any()
  former?.channel.close('lost')
  await until(() => router.controllers.any() && router.controllers.any() !== former)
  expect(router.controllers.any()?.id).toBe(former?.id)
  expect(router.violations()).toEqual([])
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
