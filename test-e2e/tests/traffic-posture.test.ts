import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { logInByOpenId, type Member } from '../member.js'
import type { TestRouter } from '../router/router.js'
import { exchange, type Hosted, startTraffic, type Traffic, until } from '../traffic.js'

let traffic: Traffic
/** Evaluates no posture. */
let old: TestRouter
/** Evaluates that of clients with access tokens. */
let current: TestRouter
let hosted: Hosted
beforeAll(async () => {
  traffic = await startTraffic()
  old = await traffic.router('old')
  current = await traffic.router('current', { line: '2.0' })
  hosted = await traffic.hosted('files', old)
  await traffic.requireDomain(hosted.serviceId, 'a.example')
})
afterAll(() => traffic[Symbol.asyncDispose]())

interface Created {
  readonly id: string
  readonly token: string
  readonly edgeRouters: readonly { readonly name: string }[]
}

const dial = (member: Member) =>
  member.call('POST', '/sessions', { serviceId: hosted.serviceId, type: 'Dial' })
async function created(member: Member) {
  const { status, body } = await dial(member)
  expect(status).toBe(201)
  const { id, token, edgeRouters } = body.data as Created
  return { id, token, routers: edgeRouters.map(({ name }) => name) }
}
const report = (member: Member) =>
  member.request('POST', '/posture-response', { id: 'any', typeId: 'DOMAIN', domain: 'a.example' })

test('a client with an access token reports its device to a router that evaluates it, or to the controller', async () => {
  const member = await traffic.member('alice', 'client')
  const client = await logInByOpenId(traffic.server, member.id, member.certificate)
  expect((await dial(member)).body.error).toMatchObject({ code: 'INVALID_POSTURE' })

  const session = await created(client)
  expect(session.routers).toEqual(['current'])
  expect(await client.request<Created>('GET', `/sessions/${session.id}`)).toMatchObject({
    edgeRouters: [{ name: 'current' }],
  })
  const routersOf = async (headers: Record<string, string>) => {
    const { body } = await client.call(
      'GET',
      `/services/${hosted.serviceId}/edge-routers`,
      undefined,
      headers,
    )
    return (body.data as Created).edgeRouters?.map(({ name }) => name).sort()
  }
  expect(await routersOf({})).toEqual(['current', 'old'])
  expect(await routersOf({ 'session-token': session.token })).toEqual(['current'])
  const sdk = await traffic.connect(client, old)
  await expect(sdk.dial(session.token)).rejects.toThrow('invalid session')

  await current[Symbol.asyncDispose]()
  await until(async () => (await dial(client)).status === 409)
  await report(client)
  const next = await created(client)
  expect(next.id).not.toBe(session.id)
  expect(next.routers).toContain('old')
  const sent = randomBytes(1000)
  expect(await exchange(await sdk.dial(next.token), sent)).toEqual(sent)
})
