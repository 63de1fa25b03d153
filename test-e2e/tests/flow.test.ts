import { connect, type NatsConnection } from '@nats-io/transport-node'
import { expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import type { Member } from '../member.js'
import { startNetwork } from '../network.js'

const intercept = { protocols: ['tcp'], addresses: ['wiki.example'], portRanges: [{ low: 80, high: 80 }] }

interface Wiki {
  readonly serviceId: string
  readonly policyId: string
}

/** Lets identities with the attribute 'staff' dial the wiki. */
async function offerWiki(admin: Admin): Promise<Wiki> {
  const config = { name: 'wiki', configTypeId: 'g7cIWbcGg', data: intercept }
  const configs = [await admin.create('configs', config)]
  const service = { name: 'wiki', encryptionRequired: true, configs, roleAttributes: ['web'] }
  const serviceId = await admin.create('services', service)
  await admin.create('edge-routers', { name: 'r1', roleAttributes: ['public'] })
  const all = { semantic: 'AnyOf', identityRoles: ['#all'], edgeRouterRoles: ['#public'] }
  await admin.create('edge-router-policies', { name: 'all', ...all })
  const routers = { semantic: 'AnyOf', serviceRoles: ['#all'], edgeRouterRoles: ['#all'] }
  await admin.create('service-edge-router-policies', { name: 'all', ...routers })
  const dial = { name: 'dial', type: 'Dial', semantic: 'AllOf' }
  const roles = { identityRoles: ['#staff'], serviceRoles: ['#web'] }
  return { serviceId, policyId: await admin.create('service-policies', { ...dial, ...roles }) }
}

const dial = (member: Member, serviceId: string) =>
  member.request<{ id: string }>('POST', '/sessions', { serviceId, type: 'Dial' })

/** Collects the ids of deleted sessions from the bus. */
async function listenForEnds(bus: NatsConnection): Promise<ReadonlySet<string>> {
  const ended = new Set<string>()
  bus.subscribe('overlay.events.edge.sessions', {
    callback(_err, message) {
      const { id, event_type } = message.json<{ id: string; event_type: string }>()
      if (event_type === 'deleted') ended.add(id)
    },
  })
  await bus.flush()
  return ended
}

test('an admin offers a service, a member dials it, and its sessions end when the access is taken away', async () => {
  await using network = await startNetwork()
  const bus = await connect(network.bus.login)
  try {
    const ended = await listenForEnds(bus)
    const admin = await network.admin()
    const { serviceId, policyId } = await offerWiki(admin)
    const alice = await admin.enroll({ name: 'alice', roleAttributes: ['staff'] })
    const [service] = await alice.request<object[]>('GET', '/services?configTypes=intercept.v1')
    expect(service).toMatchObject({
      name: 'wiki',
      permissions: ['Dial'],
      config: { 'intercept.v1': intercept },
    })

    const session = await dial(alice, serviceId)
    expect(session).toMatchObject({ type: 'Dial', serviceId, edgeRouters: [{ name: 'r1', isOnline: false }] })
    const statusOf = async ({ id }: { id: string }) => (await admin.call('GET', `/sessions/${id}`)).status
    expect(await statusOf(session)).toBe(200)

    const before = await alice.request<{ lastChangeAt: string }>(
      'GET',
      '/current-api-session/service-updates',
    )
    await admin.request('PATCH', `/service-policies/${policyId}`, { identityRoles: ['#nobody'] })
    expect(await alice.services()).toEqual([])
    const after = await alice.request<{ lastChangeAt: string }>('GET', '/current-api-session/service-updates')
    expect(after.lastChangeAt > before.lastChangeAt).toBe(true)
    await expect.poll(() => statusOf(session)).toBe(404)
    await expect.poll(() => ended.has(session.id)).toBe(true)
    const refused = await alice.call('POST', '/sessions', { serviceId, type: 'Dial' })
    expect([refused.status, refused.body.error?.code]).toEqual([404, 'NOT_FOUND'])

    await admin.request('PATCH', `/service-policies/${policyId}`, { identityRoles: ['#staff'] })
    const again = await dial(alice, serviceId)
    await alice.request('DELETE', '/current-api-session')
    expect((await alice.call('GET', '/current-identity')).status).toBe(401)
    await expect.poll(() => ended.has(again.id)).toBe(true)

    const bob = await admin.enroll({ name: 'bob', roleAttributes: ['staff'] })
    const last = await dial(bob, serviceId)
    await admin.request('DELETE', `/identities/${bob.id}`)
    expect(await statusOf(last)).toBe(404)
    expect((await bob.call('GET', '/current-identity')).status).toBe(401)
    await expect.poll(() => ended.has(last.id)).toBe(true)
  } finally {
    await bus.close()
  }
})
