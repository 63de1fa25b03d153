import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { logInByOpenId } from '../member.js'
import type { TestRouter } from '../router/router.js'
import { exchange, openSession, startTraffic, type Traffic, until } from '../traffic.js'

/** Only a test that fails waits as long. */
const WITHIN_MS = 60_000

let traffic: Traffic
const routers = new Map<string, TestRouter>()
beforeAll(async () => {
  traffic = await startTraffic({ sessions: 2 })
  for (const line of ['1.1', '2.0'] as const)
    routers.set(line, await traffic.router(`line-${line}`, { line, hasLinks: true }))
  await until(() => [...routers.values()].every((router) => router.links?.all().length === 1))
})
afterAll(() => traffic[Symbol.asyncDispose]())

const of = (line: string): TestRouter => {
  const router = routers.get(line)
  if (!router) throw new Error(`no router of ${line}`)
  return router
}
const terminatorsOf = async (serviceId: string) => {
  const filter = encodeURIComponent(`service = "${serviceId}"`)
  return (await traffic.admin.request<object[]>('GET', `/terminators?filter=${filter}`)).length
}
const isIdle = () => [...routers.values()].every((router) => router.circuits().length === 0)

describe.each([
  ['1.1', '2.0'],
  ['2.0', '1.1'],
  ['2.0', '2.0'],
])('a host at a router of %s and a client at one of %s', (hostLine, clientLine) => {
  const name = `from-${hostLine}-to-${clientLine}`.replaceAll('.', '-')

  test('exchange data, until the session of the client and then that of the host ends', async () => {
    const host = await traffic.hosted(name, of(hostLine))
    expect(host.session.token).toMatch(/^ey/)
    const client = await traffic.dialed(host.serviceId, of(clientLine))
    expect(client.session.token).toMatch(/^ey/)
    const sent = randomBytes(100_000)
    expect(await exchange(client.connection, sent)).toEqual(sent)

    await traffic.admin.request('DELETE', `/sessions/${client.session.id}`)
    await client.connection.ended
    await until(isIdle, WITHIN_MS)
    await expect(client.sdk.dial(client.session.token)).rejects.toThrow()

    const again = await openSession(client.member, host.serviceId, 'Dial')
    const connection = await client.sdk.dial(again.token)
    expect(await exchange(connection, sent)).toEqual(sent)
    await traffic.admin.request('DELETE', `/sessions/${host.session.id}`)
    await until(isIdle, WITHIN_MS)
    await until(async () => (await terminatorsOf(host.serviceId)) === 0, WITHIN_MS)
  })

  test('with access tokens do the same, and sign-out ends it', async () => {
    const host = await traffic.hosted(`${name}-tokens`, of(hostLine))
    const { id, certificate } = await traffic.member(`${name}-client`, 'client')
    const member = await logInByOpenId(traffic.server, id, certificate)
    const session = await openSession(member, host.serviceId, 'Dial')
    expect(session.token).toMatch(/^ey/)
    const connection = await (await traffic.connect(member, of(clientLine))).dial(session.token)
    const sent = randomBytes(100_000)
    expect(await exchange(connection, sent)).toEqual(sent)
    await member.request('DELETE', '/current-api-session')
    await until(isIdle, WITHIN_MS)
  })
})

test('a list of the routers of a service says whether a session still exists', async () => {
  const host = await traffic.hosted('refreshed', of('1.1'))
  const routersFor = (token: string) =>
    host.member.call('GET', `/services/${host.serviceId}/edge-routers`, undefined, { 'session-token': token })
  const { token, id } = host.session
  expect((await routersFor(token)).status).toBe(200)
  const shown = await host.member.request<{ token: string }>('GET', `/sessions/${id}`)
  expect(shown.token).toMatch(/^ey/)
  expect((await routersFor(shown.token)).status).toBe(200)
  expect((await routersFor(`${token.slice(0, -4)}AAAA`)).status).toBe(401)
  await traffic.admin.request('DELETE', `/sessions/${id}`)
  expect((await routersFor(token)).status).toBe(404)
})
