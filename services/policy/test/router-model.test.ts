import { DataState, DataStateChangeSet } from '@overlay/channel'
import { ownContext } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { openStrictModel } from '../../../packages/channel/testing/strict-model.js'
import { named, networkOfFile, type Replica } from './network.js'

interface Place {
  readonly timeline: string
  readonly index: bigint
  readonly previousIndex: bigint
}

/** A router that follows its model at one replica after another. */
function openRouter(routerId: string) {
  const violations: string[] = []
  const model = openStrictModel((violation) => violations.push(violation))
  const received: ('full' | 'changes')[] = []

  function take(body: Buffer, isFull: boolean, { timeline, index, previousIndex }: Place): void {
    received.push(isFull ? 'full' : 'changes')
    if (isFull) {
      const { events } = DataState.decode(body)
      model.replace({ events, endIndex: index, timelineId: timeline })
      return
    }
    const { changes } = DataStateChangeSet.decode(body)
    expect(model.apply({ changes, index, previousIndex, isSynthetic: false })).toBe('applied')
  }

  /** Follows until the model meets the condition. It is asked after each state, set and empty part. */
  async function follow({ policy }: Pick<Replica, 'policy'>, condition: () => boolean): Promise<void> {
    const stop = new AbortController()
    const request = { routerId, timeline: model.timeline, index: Number(model.index), once: false }
    const stream = policy.watchRouterModel(request, ownContext(stop.signal))
    let parts: Uint8Array[] = []
    for await (const { isFull, isLast, events, timeline, index, previousIndex } of stream) {
      if (index > 0) parts.push(events)
      if (isLast && index > 0) {
        take(Buffer.concat(parts), isFull, {
          timeline,
          index: BigInt(index),
          previousIndex: BigInt(previousIndex),
        })
        parts = []
      }
      if (parts.length === 0 && condition()) break
    }
    stop.abort()
    expect(violations).toEqual([])
  }
  const names = (kind: 'identity' | 'service'): string[] =>
    [...model.contents[kind].values()].map(({ name }) => name).sort()
  return { model, received, follow, names }
}

const { network, policy } = await networkOfFile()

/** A router with its own identities and services. */
async function openSite(name: string) {
  const role = [`#${name}`]
  await network.sessions.put(`router-${name}`, { isEdge: true, roleAttributes: [name] })
  await policy.create(
    'edge-router-policies',
    named({ semantic: 'AnyOf', identityRoles: role, edgeRouterRoles: role }),
  )
  await policy.create(
    'service-edge-router-policies',
    named({ semantic: 'AnyOf', serviceRoles: role, edgeRouterRoles: role }),
  )
  const service = { name: `service-${name}`, encryptionRequired: true, roleAttributes: [name] }
  const serviceId = await policy.create('services', service)
  await network.identity.put(`identity-${name}`, { roleAttributes: [name], isAdmin: false })
  return { routerId: `router-${name}`, serviceId, role }
}

test('a router learns what policies grant it, and follows changes at any replica from its index on', async () => {
  const { routerId, serviceId, role } = await openSite('one')
  await openSite('other')
  const router = openRouter(routerId)
  await router.follow(policy, () => router.model.contents.identity.size === 1)
  expect([router.names('identity'), router.names('service')]).toEqual([
    ['name-identity-one'],
    ['service-one'],
  ])

  const policyId = await policy.create(
    'service-policies',
    named({ type: 'Dial', semantic: 'AnyOf', identityRoles: role, serviceRoles: role }),
  )
  const members = () => [...(router.model.contents['service-policy'].get(policyId)?.identities ?? [])]
  await router.follow(policy, () => members().length === 1)

  await network.identity.put('identity-two', { roleAttributes: ['one'], isAdmin: false })
  await using other = await network.replica()
  await router.follow(other, () => members().length === 2)
  expect(members().sort()).toEqual(['identity-one', 'identity-two'])

  await network.identity.remove('identity-two')
  await policy.update('services', serviceId, { name: 'renamed' })
  await router.follow(policy, () => router.names('service').includes('renamed') && members().length === 1)
  expect(router.names('identity')).toEqual(['name-identity-one'])
})

test('a router is brought up to date without another full state, also by another replica', async () => {
  const { routerId, role } = await openSite('three')
  await using other = await network.replica()
  const router = openRouter(routerId)
  await router.follow(other, () => router.model.contents.identity.size === 1)
  const count = (): number => router.model.contents.identity.size
  for (const [at, replica] of [policy, other, policy].entries()) {
    const before = count()
    await network.identity.put(`more-${at}`, { roleAttributes: [role[0]?.slice(1)], isAdmin: false })
    await router.follow(replica, () => count() > before)
  }
  expect(router.received).toEqual(['full', 'changes', 'changes', 'changes'])
})

test('a router that changes replicas while everything changes never breaks a rule, and ends with what policies grant', async () => {
  const { routerId, serviceId, role } = await openSite('five')
  await using other = await network.replica()
  const router = openRouter(routerId)
  const replicas = [policy, other]
  const create = (kind: string, row: object) => policy.create(kind, named(row))
  const check = await create('posture-checks', {
    typeId: 'MAC',
    macAddresses: ['00'],
    roleAttributes: ['five'],
  })
  const config = await create('configs', {
    configTypeId: await create('config-types', {}),
    data: { port: 1 },
  })
  const grant = {
    type: 'Bind',
    semantic: 'AnyOf',
    identityRoles: role,
    serviceRoles: role,
    postureCheckRoles: role,
  }
  const policyId = await create('service-policies', grant)
  const writes = [
    () => policy.update('services', serviceId, { roleAttributes: [], configs: [config] }),
    () => policy.update('service-policies', policyId, { postureCheckRoles: [], identityRoles: ['#all'] }),
    () => network.identity.put('identity-six', { roleAttributes: ['five'], isAdmin: false }),
    () => policy.update('services', serviceId, { roleAttributes: ['five'], configs: [] }),
    () => policy.update('service-policies', policyId, { type: 'Dial', postureCheckRoles: role }),
    () => network.sessions.put(routerId, { isEdge: true, roleAttributes: [] }),
    () => policy.update('posture-checks', check, { macAddresses: ['01'] }),
    () => network.sessions.put(routerId, { isEdge: true, roleAttributes: ['five'] }),
    () => policy.remove('posture-checks', check),
    () => network.identity.remove('identity-six'),
  ]
  for (const [at, write] of writes.entries()) {
    const following = router.follow(replicas[at % 2] ?? policy, () => true)
    await Promise.all([write(), at % 3 === 0 ? following : undefined])
    await following
  }
  const isDone = () => router.names('identity').join() === 'name-identity-five' && checks().length === 0
  const checks = () => [...router.model.contents['posture-check'].keys()]
  if (!isDone()) await router.follow(other, isDone)
  const known = router.model.contents['service-policy'].get(policyId)
  expect([[...(known?.services ?? [])], [...(known?.identities ?? [])], known?.policy.policyType]).toEqual([
    [serviceId],
    ['identity-five'],
    1,
  ])
})

test('an index beyond all changes, another timeline and none at all are answered by a full state', async () => {
  const { routerId } = await openSite('four')
  const request = { routerId, timeline: '', index: 0, once: true }
  const first = async (timeline: string, index: number) => {
    for await (const part of policy.policy.watchRouterModel(
      { ...request, timeline, index, once: false },
      ownContext(AbortSignal.timeout(20_000)),
    ))
      if (part.isLast) return part
    return undefined
  }
  const fresh = await first('', 0)
  const timeline = fresh?.timeline ?? ''
  expect(timeline).not.toBe('')
  for (const part of [
    await first(timeline, Number.MAX_SAFE_INTEGER),
    await first('another', fresh?.index ?? 0),
    await first('', 0),
  ])
    expect(part?.isFull).toBe(true)
})

test('an unknown router gets an empty full state that ends the stream, where it asks for one', async () => {
  const parts = []
  const request = { routerId: 'unknown', timeline: '', index: 0, once: true }
  for await (const part of policy.policy.watchRouterModel(request, ownContext(AbortSignal.timeout(20_000))))
    parts.push(part)
  const last = parts.at(-1)
  expect([last?.isFull, last?.isLast]).toEqual([true, true])
  const { events } = DataState.decode(Buffer.concat(parts.map(({ events }) => events)))
  expect(events.filter(({ configType }) => !configType)).toEqual([])
})
