import { Access, type Position, type Positions } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { admin, as, networkOfFile, newName } from './network.js'

const { network, policy } = await networkOfFile()

const at = (positions: Positions) => ({ ...as({}), positions })
const authorize = (
  identityId: string,
  serviceId: string,
  { context = admin, access = Access.ACCESS_DIAL, isAdmin = false, by = policy } = {},
) =>
  by.policy.authorize(
    { identityId, serviceId, access, isAdmin, apiSessionId: '', postureAtRouters: false },
    context,
  )
const whole = () => policy.engine.catchUp({ signal: AbortSignal.timeout(30_000) })

let count = 0
/** Alice may dial the wiki through one router. */
async function wiki() {
  const n = ++count
  const [alice, router, staff, front] = [`alice${n}`, `router${n}`, `staff${n}`, `front${n}`]
  await network.identity.put(alice, { isAdmin: false, roleAttributes: [staff] })
  await network.sessions.put(router, { roleAttributes: [front] })
  const service = await policy.create('services', { name: `wiki${n}`, encryptionRequired: true })
  const named = { name: `policy${n}`, semantic: 'AllOf' }
  const serviceRoles = [`@${service}`]
  const identityRoles = [`#${staff}`]
  const edgeRouterRoles = [`#${front}`]
  const dial = await policy.create('service-policies', {
    ...named,
    type: 'Dial',
    identityRoles,
    serviceRoles,
  })
  await policy.create('service-edge-router-policies', { ...named, serviceRoles, edgeRouterRoles })
  const routing = await policy.create('edge-router-policies', { ...named, identityRoles, edgeRouterRoles })
  await whole()
  return { alice, router, service, dial, routing, identityRoles, edgeRouterRoles, staff }
}

test('an authorization to dial has the routers, the policies, the name of the service and the positions of its judgement', async () => {
  const { alice, router, service, dial } = await wiki()
  const allowed = await authorize(alice, service)
  expect(allowed).toMatchObject({ routerIds: [router], policyIds: [dial] })
  expect(allowed.serviceName).toMatch(/^wiki/)
  expect(Object.keys(allowed.positions).sort()).toEqual(['identity', 'policy', 'sessions'])
})

test('the routers of identities are those that edge router policies grant them, at the positions of the call', async () => {
  const { alice, router, routing, staff, edgeRouterRoles } = await wiki()
  const other = newName()
  const ask = async (identityIds: string[], positions: Positions = {}) => {
    const { sets, setOf } = await policy.policy.getIdentityRouters({ identityIds }, at(positions))
    return setOf.map((index) => sets[index]?.ids)
  }
  expect(await ask([alice, 'unknown', alice])).toEqual([[router], [], [router]])
  const identity = await network.identity.put(other, { isAdmin: false, roleAttributes: [staff] })
  expect(await ask([other, alice], { identity })).toEqual([[router], [router]])
  await policy.remove('edge-router-policies', routing)
  await policy.engine.catchUpOwn({ signal: AbortSignal.timeout(30_000) })
  expect(await ask([other, alice])).toEqual([[], []])
  const named = { name: newName(), semantic: 'AllOf' }
  await policy.create('edge-router-policies', { ...named, identityRoles: [`@${other}`], edgeRouterRoles })
  await policy.engine.catchUpOwn({ signal: AbortSignal.timeout(30_000) })
  expect(await ask([other, alice])).toEqual([[router], []])
  const later = { timeline: identity.timeline, number: identity.number + 1 }
  await expect(ask([other], { identity: later })).rejects.toMatchObject({ code: 'TIMEOUT' })
})

test('a watch of grants names the identities whose routers or policies change, also where no list does', async () => {
  const { alice, router, dial, routing, edgeRouterRoles, identityRoles } = await wiki()
  const { service } = await wiki() // of another identity
  const signal = AbortSignal.timeout(30_000)
  const messages = policy.policy.watchHeaders({ grants: true }, { ...as({}), signal })[Symbol.asyncIterator]()
  await messages.next()
  const announced = async (change: () => Promise<unknown>): Promise<readonly string[]> => {
    await change()
    for (;;) {
      const { value } = await messages.next()
      expect(value).toMatchObject({ all: false, grants: true })
      if (value.identityIds.length > 0) return value.identityIds
    }
  }
  for (const change of [
    () => network.sessions.put(router, { roleAttributes: ['elsewhere'] }),
    () => network.sessions.put(router, { roleAttributes: [edgeRouterRoles[0]?.slice(1)] }),
    () => policy.update('edge-router-policies', routing, { edgeRouterRoles: ['#elsewhere'] }),
    () =>
      policy.create('service-policies', {
        ...{ name: newName(), type: 'Dial', semantic: 'AnyOf', identityRoles, serviceRoles: [`@${service}`] },
      }),
    () => policy.remove('service-policies', dial),
    () => policy.update('edge-router-policies', routing, { edgeRouterRoles }),
    () => network.sessions.remove(router),
    () => network.identity.remove(alice),
  ])
    expect(await announced(change)).toContain(alice)
  await messages.return?.()
})

test('the checks come in order: seen, permitted, reachable', async () => {
  const { alice, service, routing } = await wiki()
  const unknown = { code: 'NOT_FOUND', detail: 'service with id nothing not found' }
  await expect(authorize(alice, 'nothing')).rejects.toMatchObject(unknown)
  await expect(authorize(alice, 'nothing', { isAdmin: true })).rejects.toMatchObject(unknown)
  await expect(authorize('bob', service)).rejects.toMatchObject({
    detail: `service with id ${service} not found`,
  })
  const refused = {
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'ServiceId', reason: 'service not found', value: service },
  }
  await expect(authorize('bob', service, { isAdmin: true })).rejects.toMatchObject(refused)
  await expect(authorize(alice, service, { access: Access.ACCESS_BIND })).rejects.toMatchObject(refused)
  await policy.update('edge-router-policies', routing, { edgeRouterRoles: ['#elsewhere'] })
  await whole()
  await expect(authorize(alice, service)).rejects.toMatchObject({ code: 'NO_EDGE_ROUTERS_AVAILABLE' })
})

test("an authorization follows the caller's own writes to any service", async () => {
  const { service, router, staff } = await wiki()
  const write = (roleAttributes: string[]): Promise<Position> =>
    network.identity.put('bob', { isAdmin: false, roleAttributes })
  const context = at({ identity: await write([staff]) })
  expect(await authorize('bob', service, { context })).toMatchObject({ routerIds: [router] })
  const later = at({ identity: await write([]) })
  await expect(authorize('bob', service, { context: later })).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('an authorization whose positions are never reached times out', async () => {
  const { alice, service } = await wiki()
  const hasty = await network.replica({ waitMs: 100 })
  const { identity } = policy.engine.positions()
  const context = at({ identity: { timeline: identity?.timeline ?? '', number: 1_000_000 } })
  await expect(authorize(alice, service, { context, by: hasty })).rejects.toMatchObject({ code: 'TIMEOUT' })
})

test('an incomplete load judges no access', async () => {
  const { alice, service } = await wiki()
  let finish = (): void => undefined
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const { source } = network.identity
  const starting = await network.replica({
    waitMs: 100,
    identity: {
      ...source,
      async *load(kinds, signal) {
        for await (const message of source.load(kinds, signal)) {
          yield message
          if (message.changes.length > 0) await finished
        }
      },
    },
  })
  const lost = () =>
    starting.policy.findLost(
      {
        held: [
          {
            identityId: alice,
            serviceId: service,
            access: Access.ACCESS_DIAL,
            apiSessionId: '',
            postureAtRouters: false,
          },
        ],
      },
      as({}),
    )
  await expect(lost()).rejects.toMatchObject({ code: 'TIMEOUT' })
  await expect(starting.policy.getHeader({ identityId: alice }, as({}))).rejects.toMatchObject({
    code: 'UNAVAILABLE',
  })
  finish()
  await expect.poll(async () => (await lost()).lost).toEqual([false])
})

test('lost accesses, also of deleted entities, are distinguished from granted ones; an admin keeps its own', async () => {
  const { alice, service, dial, staff } = await wiki()
  await network.identity.put('root', { isAdmin: true, roleAttributes: [staff] })
  await whole()
  const shared = { apiSessionId: '', postureAtRouters: false }
  const held = [
    { identityId: alice, serviceId: service, access: Access.ACCESS_DIAL, ...shared },
    { identityId: alice, serviceId: service, access: Access.ACCESS_BIND, ...shared },
    { identityId: 'gone', serviceId: service, access: Access.ACCESS_DIAL, ...shared },
    { identityId: 'root', serviceId: service, access: Access.ACCESS_DIAL, ...shared },
    { identityId: 'root', serviceId: 'gone', access: Access.ACCESS_DIAL, ...shared },
  ]
  const before = await policy.policy.findLost({ held }, as({}))
  expect(before).toEqual({ lost: [false, true, true, false, true], granting: [dial, '', '', dial, ''] })
  const position = await policy.update('service-policies', dial, { identityRoles: [] })
  const after = await policy.policy.findLost({ held }, at(position ? { policy: position } : {}))
  expect(after).toEqual({ lost: [true, true, true, false, true], granting: ['', '', '', '', ''] })
})

test('advice names what exists and leaves out the rest', async () => {
  const { alice, router, service, routing } = await wiki()
  const advice = async (identityId: string, serviceId = service) =>
    JSON.parse(
      Buffer.from((await policy.policy.getPolicyAdvice({ identityId, serviceId }, admin)).json).toString(),
    )
  const found = await advice(alice)
  expect(found).toMatchObject({
    identityId: alice,
    identity: { entity: 'identities', id: alice, name: `name-${alice}` },
    serviceId: service,
    service: { entity: 'services', id: service },
    isDialAllowed: true,
    identityRouterCount: 1,
    serviceRouterCount: 1,
    commonRouters: [{ entity: 'edge-routers', id: router, name: `name-${router}`, isOnline: true }],
  })
  expect(found).not.toHaveProperty('isBindAllowed')
  await policy.remove('edge-router-policies', routing)
  const without = await advice(alice)
  expect(without.commonRouters).toBeNull()
  expect(without).not.toHaveProperty('identityRouterCount')
  await expect(advice('nobody')).rejects.toMatchObject({ detail: 'identity with id nobody not found' })
  await expect(advice(alice, 'none')).rejects.toMatchObject({ detail: 'service with id none not found' })
})

test('links that policies make are answered as roles', async () => {
  const { alice, router, service, identityRoles, edgeRouterRoles } = await wiki()
  const linked = async (kind: string, id: string, link: string, policyType = '') => {
    const perspective = {
      asIdentity: '',
      configTypes: [],
      hasConfigTypes: false,
      policyType,
      asClient: false,
    }
    return policy.entities.select({ from: { kind, id }, link, perspective }, admin)
  }
  const only = (roles: string[]) => ({ ids: [], symbol: '', roles: [{ roles, semantic: 'AllOf' }] })
  expect(await linked('services', service, 'identities')).toMatchObject(only(identityRoles))
  expect(await linked('services', service, 'identities', 'dial')).toMatchObject(only(identityRoles))
  expect(await linked('services', service, 'identities', 'bind')).toMatchObject({ ids: [], roles: [] })
  expect(await linked('identities', alice, 'services')).toMatchObject(only([`@${service}`]))
  expect(await linked('identities', alice, 'edge-routers')).toMatchObject(only(edgeRouterRoles))
  expect(await linked('services', service, 'edge-routers')).toMatchObject(only(edgeRouterRoles))
  expect(await linked('edge-routers', router, 'identities')).toMatchObject(only(identityRoles))
  expect(await linked('edge-routers', router, 'services')).toMatchObject(only([`@${service}`]))
})

test('the policies of an entity are answered as ids; an unknown entity has none', async () => {
  const { alice, service, dial } = await wiki()
  const policies = async (kind: string, id: string) =>
    (
      await policy.entities.select(
        { from: { kind, id }, link: 'service-policies', perspective: undefined },
        admin,
      )
    ).ids
  expect(await policies('services', service)).toEqual([dial])
  expect(await policies('identities', alice)).toEqual([dial])
  expect(await policies('services', 'nothing')).toEqual([])
})

test('policies are found by what they select', async () => {
  const { alice, service, dial } = await wiki()
  const found = async (filter: string) =>
    (await policy.list('service-policies', { filter })).map(({ id }) => id)
  expect(await found(`anyOf(identities) = "${alice}" and anyOf(services) = "${service}"`)).toEqual([dial])
  expect(await found(`anyOf(services) = "${service}" and type = 2`)).toEqual([])
})
