import { ModelAction, ModelEvent, modelType, SubscribeToDataModelRequest } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { expect, test, vi } from 'vitest'
import { closing } from '../../../packages/channel/testing/channel-pair.js'
import { newTokenKey } from '../../../packages/process/testing/tokens.js'
import { authority } from '../../identity/test/certificates.js'
import { NO_FEATURES } from '../src/domain/router-features.js'
import { FULL_MODEL_MS, FULL_MODELS_AT_ONCE } from '../src/limits.js'
import { fakeIdentity } from './access.js'
import { startModels, type TestModelRouter } from './model-routers.js'
import { fakeModels, fakePki, identityEvent } from './models.js'

const hour = 3_600_000
const long = SubscribeToDataModelRequest.fromPartial({ subscriptionId: 'x'.repeat(101) })
const [first, second] = [newTokenKey('first'), newTokenKey('second')]
const root = (await authority('root')).certificate.toString()
const identitiesOf = ({ model }: TestModelRouter) => [...model.contents.identity.keys()].sort()
const keysOf = ({ model }: TestModelRouter) => [...model.contents['public-keys'].keys()].sort()
const revokedBy = ({ model }: TestModelRouter) => [...model.contents.revocations.keys()]
/** Without the sets of keys and revocations. */
const setsOf = ({ kinds }: TestModelRouter) => kinds.filter((kind) => kind !== 'synthetic')

/** A router that has subscribed and received everything. */
async function subscribed(network: Awaited<ReturnType<typeof startModels>>, former?: TestModelRouter) {
  const router = await network.connect(undefined, former)
  router.subscribe()
  await router.until(() => router.isSynced() && router.model.index === BigInt(network.policy.index()))
  return router
}

test('a router without a model receives everything, and then each change', async () => {
  await using network = await startModels({ pki: fakePki([first], [root]) })
  const { policy } = network
  policy.commit(identityEvent('alice'), identityEvent('bob'))
  const router = await subscribed(network)
  expect(setsOf(router)).toEqual(['full'])
  expect(identitiesOf(router)).toEqual(['alice', 'bob'])
  expect(keysOf(router)).toEqual([expect.stringMatching(/^ca-[0-9a-f]{40}$/), 'first'])

  policy.commit(identityEvent('carol'))
  policy.commit(identityEvent('alice', ModelAction.DELETE), identityEvent('dave'))
  await router.until(() => router.model.index === BigInt(policy.index()))
  expect(identitiesOf(router)).toEqual(['bob', 'carol', 'dave'])
  expect(setsOf(router)).toEqual(['full', 'applied', 'applied'])
  expect(router.violations).toEqual([])
})

test('a router that connects to another replica receives what it has missed', async () => {
  const policy = fakeModels()
  const pki = fakePki([first], [root])
  await using one = await startModels({ policy, pki })
  await using two = await startModels({ policy, pki })
  const before = await subscribed(one)
  before.channel.close('lost')
  policy.commit(identityEvent('alice'))
  const after = await subscribed(two, before)
  expect(identitiesOf(after)).toEqual(['alice'])
  expect(setsOf(after)).toEqual(['full', 'applied'])
  expect(after.violations).toEqual([])
})

test('a router is synchronized only when it has been sent what it has missed', async () => {
  await using network = await startModels()
  const { policy } = network
  const before = await subscribed(network)
  before.channel.close('lost')
  policy.commit(identityEvent('alice'))
  policy.setSlow(true)
  const after = await network.connect(undefined, before)
  after.subscribe()
  await after.until(() => policy.waits() > 2)
  expect(after.isSynced()).toBe(false)
  policy.setSlow(false)
  await after.until(after.isSynced)
  expect(identitiesOf(after)).toEqual(['alice'])
})

test('a router receives everything when policy cannot continue, and after a restored backup', async () => {
  await using network = await startModels()
  const { policy } = network
  const before = await subscribed(network)
  before.channel.close('lost')
  policy.commit(identityEvent('alice'))
  policy.forget()
  const after = await subscribed(network, before)
  expect(setsOf(after)).toEqual(['full', 'full'])
  policy.restore()
  await after.until(() => setsOf(after).length === 3)
  expect(setsOf(after)).toEqual(['full', 'full', 'full'])
  policy.commit(identityEvent('bob'))
  await after.until(() => identitiesOf(after).includes('bob'))
  expect(after.violations).toEqual([])
})

test('a renewed subscription goes on, and sends nothing again', async () => {
  await using network = await startModels()
  const { policy } = network
  const router = await subscribed(network)
  const before = [...router.kinds]
  const { length } = policy.requests
  router.subscribe({ renew: true, currentIndex: 0n, subscriptionId: 'subscription-1' })
  policy.commit(identityEvent('alice'))
  await router.until(() => identitiesOf(router).includes('alice'))
  expect(router.kinds).toEqual([...before, 'applied'])
  expect(policy.requests).toHaveLength(length)
})

test('a subscription lasts until the router has noticed that its time is over', async () => {
  await using network = await startModels()
  const router = await network.connect()
  using timers = vi.spyOn(globalThis, 'setTimeout')
  for (const renew of [false, true]) {
    router.subscribe({ subscriptionDurationSeconds: 300, renew })
    await router.until(() => timers.mock.calls.filter(([, ms]) => ms === 390_000).length === (renew ? 2 : 1))
  }
})

test('a router that has lost a change subscribes again and receives it', async () => {
  await using network = await startModels()
  const { policy } = network
  const router = await subscribed(network)
  policy.commit(identityEvent('alice'))
  await router.until(() => identitiesOf(router).includes('alice'))
  router.subscribe({ currentIndex: router.model.index - 10n }) // which policy then continues
  await router.until(() => router.violations.length > 0)
  expect(router.violations).toEqual([expect.stringContaining('after')])
  policy.commit(identityEvent('bob'))
  await router.until(() => identitiesOf(router).includes('bob'))
  expect(setsOf(router).filter((kind) => kind === 'full')).toHaveLength(1)
})

test('the loss of policy delays changes, and loses none', async () => {
  await using network = await startModels()
  const { policy } = network
  const router = await subscribed(network)
  policy.setAway(true)
  policy.commit(identityEvent('alice'))
  policy.setAway(false)
  await router.until(() => identitiesOf(router).includes('alice'))
  expect(setsOf(router)).toEqual(['full', 'applied'])
  expect(router.violations).toEqual([])
})

test('new keys reach subscribed routers at once, and absent ones in a full state without the old ones', async () => {
  const pki = fakePki([first], [root])
  await using network = await startModels({ pki })
  const router = await subscribed(network)
  const absent = await subscribed(network)
  absent.channel.close('lost')
  pki.replaceKeys([second])
  await router.until(() => keysOf(router).includes('second') && !keysOf(router).includes('first'))
  expect(setsOf(router)).toEqual(['full'])
  router.subscribe() // as after a gap: its keys are known
  network.policy.commit(identityEvent('alice'))
  await router.until(() => identitiesOf(router).includes('alice'))
  expect(setsOf(router)).toEqual(['full', 'applied'])

  const returned = await subscribed(network, absent)
  expect(keysOf(returned)).toEqual(keysOf(router))
  expect(setsOf(returned)).toEqual(['full', 'full'])
  expect([...router.violations, ...returned.violations]).toEqual([])
})

test('authorities of third parties are keys while they are verified', async () => {
  const pki = fakePki([first])
  const certPem = (await authority('third party')).certificate.toString()
  pki.putCa('other', { isVerified: false, certPem })
  await using network = await startModels({ pki })
  const router = await subscribed(network)
  expect(keysOf(router)).toEqual(['first'])
  pki.putCa('broken', { isVerified: true, certPem: certPem.replace(/\nM/, '\nX') })
  pki.putCa('other', { isVerified: true, certPem })
  await router.until(() => keysOf(router).length === 2)
  pki.putCa('other', { isVerified: false, certPem })
  await router.until(() => keysOf(router).length === 1)
  expect(router.violations).toEqual([])
})

test('no full state without keys: no client could connect', async () => {
  const pki = fakePki([first], [root])
  pki.setAway(true)
  await using network = await startModels({ pki })
  const router = await network.connect()
  router.subscribe()
  await router.until(() => router.kinds.length === 1)
  pki.setAway(false)
  await router.until(() => setsOf(router).length === 1)
  expect(keysOf(router)).toHaveLength(2)
})

test('revocations are in a full state, and their changes reach subscribed routers', async () => {
  const identity = fakeIdentity()
  const [one, two] = [identity.bearer('alice'), identity.bearer('bob')]
  identity.revoke(one, Date.now() + hour)
  await using network = await startModels({ identity })
  const router = await subscribed(network)
  await router.until(() => revokedBy(router).length === 1)
  expect(router.model.contents.revocations.get(one.id)).toMatchObject({ type: 'API_SESSION' })
  identity.revoke(two, Date.now() + hour)
  await router.until(() => revokedBy(router).length === 2)
  identity.put(one)
  await router.until(() => revokedBy(router).length === 1)
  const later = await subscribed(network)
  expect(revokedBy(later)).toEqual([two.id])
  expect([...router.violations, ...later.violations]).toEqual([])
})

test('a router before 2.0 gets no revocations, and need not compare its model', async () => {
  const identity = fakeIdentity()
  const [one, two] = [identity.bearer('alice'), identity.bearer('bob')]
  identity.revoke(one, Date.now() + hour)
  await using network = await startModels({ identity, pki: fakePki([first]) })
  const features = { ...NO_FEATURES, hasDataModel: true }
  const [old, current] = [await network.connect(features), await network.connect()]
  for (const router of [old, current]) router.subscribe()
  await current.until(() => revokedBy(current).length === 1)
  identity.revoke(two, Date.now() + hour)
  await current.until(() => revokedBy(current).length === 2)
  expect(await network.concern.validateModel(current.routerId, true)).toMatchObject({ count: 0 })
  await old.until(() => setsOf(old).length === 1)
  await expect(network.concern.validateModel(old.routerId, true)).rejects.toThrow('but sent again')
  await old.until(() => setsOf(old).length === 2)
  expect([setsOf(old), revokedBy(old)]).toEqual([['full', 'full'], []])
  expect([...old.violations, ...current.violations]).toEqual([])
})

test('two subscriptions at once are answered by one full state', async () => {
  await using network = await startModels({ pki: fakePki([first], [root]) })
  network.policy.commit(identityEvent('alice'))
  const router = await network.connect()
  router.subscribe()
  router.subscribe()
  await router.until(() => setsOf(router).length > 0)
  network.policy.commit(identityEvent('bob'))
  await router.until(() => identitiesOf(router).length === 2)
  expect(setsOf(router)).toEqual(['full', 'applied'])
  expect(network.policy.requests.filter(({ once }) => once)).toHaveLength(1)
})

test('a router that asks again and again receives two full states at most, and loses its channel', async () => {
  await using network = await startModels({ repeatMs: hour })
  const { policy } = network
  const router = await subscribed(network)
  const reason = closing(router.controllerChannel)
  for (let i = 0; i < 30; i++)
    router.subscribe({ currentIndex: i % 2 ? 0n : 2n ** 64n - 1n, timelineId: 'wrong' })
  expect((await reason).message).toBe('too many subscriptions')
  expect(policy.requests.filter(({ once }) => once).length).toBeLessThanOrEqual(2)
  expect(setsOf(router).length).toBeLessThanOrEqual(2)
})

test('few full states are in memory at a time, also where routers take none', async () => {
  await using network = await startModels()
  const { policy } = network
  const appDataJson = Buffer.from(`"${'x'.repeat(11_000_000)}"`)
  policy.commit(ModelEvent.fromPartial({ identity: { id: 'large', appDataJson } }))
  const read = () => policy.requests.filter(({ once }) => once).length
  const slow = await Promise.all(Array.from({ length: FULL_MODELS_AT_ONCE }, () => network.connect()))
  for (const router of slow) {
    router.stall()
    router.subscribe()
  }
  await expect.poll(read).toBe(FULL_MODELS_AT_ONCE)
  const next = await network.connect()
  next.subscribe()
  await next.until(() => next.kinds.length === 1)
  expect(read()).toBe(FULL_MODELS_AT_ONCE)
  slow[0]?.channel.close('gone')
  await next.until(() => setsOf(next).length === 1)
  expect(identitiesOf(next)).toEqual(['large'])
})

test('a router that does not read occupies no place, however often it subscribes', async () => {
  await using network = await startModels()
  const { policy } = network
  const read = () => policy.requests.filter(({ once }) => once).length
  const slow = await subscribed(network)
  slow.stall()
  const appDataJson = Buffer.from(`"${'x'.repeat(30_000_000)}"`)
  policy.commit(ModelEvent.fromPartial({ identity: { id: 'large', appDataJson } }))
  await expect.poll(() => slow.controllerChannel.queuedBytes()).toBeGreaterThan(100_000)
  for (let i = 0; i < FULL_MODELS_AT_ONCE; i++) slow.subscribe({ currentIndex: 0n })
  const next = await network.connect()
  next.subscribe()
  await next.until(() => setsOf(next).length === 1)
  expect(read()).toBe(2)
})

test('routers that do not answer a comparison do not delay the full states of others', async () => {
  await using network = await startModels()
  const silent = await Promise.all(Array.from({ length: FULL_MODELS_AT_ONCE }, () => subscribed(network)))
  const compared = silent.map((router) => {
    router.stall()
    return network.concern.validateModel(router.routerId, false)
  })
  const read = () => network.policy.requests.filter(({ once }) => once).length
  await expect.poll(read).toBeGreaterThan(silent.length)
  const next = await network.connect()
  next.subscribe()
  await next.until(() => setsOf(next).length === 1)
  for (const router of silent) router.channel.close('gone')
  await Promise.allSettled(compared)
})

test('a router that takes no more loses its channel when it holds up the comparison of others', async () => {
  await using network = await startModels()
  const router = await subscribed(network)
  router.stall()
  const appDataJson = Buffer.from(`"${'x'.repeat(30_000_000)}"`)
  network.policy.commit(ModelEvent.fromPartial({ identity: { id: 'large', appDataJson } }))
  await expect.poll(() => router.controllerChannel.queuedBytes()).toBeGreaterThan(100_000)
  using timers = vi.spyOn(globalThis, 'setTimeout')
  const compared = network.concern.validateModel(router.routerId, false)
  const limits = () => timers.mock.calls.filter(([, ms]) => ms === FULL_MODEL_MS)
  await expect.poll(limits).toHaveLength(1)
  limits()[0]?.[0]()
  await expect(compared).rejects.toThrow('the peer does not read')
})

test('an impossible index leads to a full state', async () => {
  await using network = await startModels()
  const router = await subscribed(network)
  router.subscribe({ currentIndex: 2n ** 63n })
  await router.until(() => setsOf(router).length === 2)
  router.subscribe({ currentIndex: 1_000_000n })
  await router.until(() => setsOf(router).length === 3)
  expect(setsOf(router)).toEqual(['full', 'full', 'full'])
})

const dropped = async () =>
  (await metrics.routerMessages.get()).values.find(({ labels }) => labels.result === 'dropped')?.value ?? 0

test('a subscription of a router without the data model is dropped and counted', async () => {
  await using network = await startModels()
  const before = await dropped()
  const router = await network.connect(NO_FEATURES)
  router.subscribe()
  await expect.poll(dropped).toBe(before + 1)
  expect(network.policy.requests).toEqual([])
  expect(router.kinds).toEqual([])
})

test('a router before 2.0 has no id of a subscription', async () => {
  await using network = await startModels()
  const router = await network.connect({ ...NO_FEATURES, hasDataModel: true })
  router.subscribe()
  await router.until(() => setsOf(router).length === 1)
  network.policy.commit(identityEvent('alice'))
  await router.until(() => identitiesOf(router).includes('alice'))
  router.channel.close('lost')
  // it calls the subscription at another process of the same controller a renewed one
  const again = await network.connect({ ...NO_FEATURES, hasDataModel: true }, router)
  network.policy.commit(identityEvent('bob'))
  again.subscribe({ renew: true })
  await again.until(() => identitiesOf(again).includes('bob'))
  expect(setsOf(again)).toEqual(['full', 'applied', 'applied'])
  expect(again.violations).toEqual([])
})

test('an operator sees how the model of a router differs, and replaces it', async () => {
  await using network = await startModels({ pki: fakePki([first], [root]) })
  const { concern } = network
  network.policy.commit(identityEvent('alice'), identityEvent('bob'))
  const router = await subscribed(network)
  expect(await concern.validateModel(router.routerId, true)).toEqual({ count: 0, differences: [] })
  router.model.contents.identity.delete('bob')
  router.model.contents.revocations.set('old', {
    id: 'old',
    type: '',
    expiresAt: undefined,
    issuedBefore: undefined,
  })
  expect(await concern.validateModel(router.routerId, false)).toEqual({
    count: 1,
    differences: [
      { entityType: 'identity', entityId: 'bob', diffType: 'removed', detail: expect.any(String) },
    ],
  })
  expect(setsOf(router)).toEqual(['full', 'validated', 'validated'])
  await concern.validateModel(router.routerId, true)
  await router.until(() => identitiesOf(router).length === 2)
  expect(setsOf(router).at(-1)).toBe('full')
  expect(await concern.validateModel('unknown', true)).toBeUndefined()
})

test('a wrong model is found and replaced without an operator', async () => {
  await using network = await startModels({ checkMs: 20, recheckMs: 1 })
  network.policy.commit(identityEvent('alice'))
  const router = await subscribed(network)
  await router.until(() => router.kinds.includes('validated'))
  expect(setsOf(router).filter((kind) => kind === 'full')).toHaveLength(1)
  router.model.contents.identity.clear()
  await router.until(() => identitiesOf(router).length === 1)
  expect(router.violations).toEqual([])
})

test.each([
  ['with a long id', SubscribeToDataModelRequest.encode(long).finish(), 'malformed subscription'],
  ['that is no protobuf', Buffer.from([0xff]), 'malformed message of type 20505'],
])('a router that sends a subscription %s loses its channel', async (_what, body, reason) => {
  await using network = await startModels()
  const router = await subscribed(network)
  const closed = closing(router.controllerChannel)
  router.channel.send({ type: modelType.subscribe, body })
  expect((await closed).message).toContain(reason)
})
