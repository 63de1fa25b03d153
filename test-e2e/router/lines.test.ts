import { randomUUID, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import {
  capability,
  DataState,
  DataStateChangeSet,
  encodeText,
  groupedHeader,
  headerKey,
  ModelAction,
  ModelEvent,
  ModelKeyUsage,
  ModelPolicyMember,
  ModelPolicyType,
  ValidateDataStateRequest,
  ValidateDataStateResponse,
} from '@overlay/channel'
import { fingerprintOf } from '@overlay/x509'
import { expect, test } from 'vitest'
import { type Authority, newAuthority } from '../authority.js'
import type { Certificate } from '../client.js'
import { type FakeControllerOptions, startFakeController } from './fake-controller.js'
import { fakeTokens } from './fake-tokens.js'
import { type Line, modelHeader, modelType } from './lines.js'
import { type RouterOptions, startRouter } from './router.js'
import { connectSdk } from './sdk.js'

const tokens = fakeTokens()

async function startNetwork(line: Line, ...controllers: FakeControllerOptions[]) {
  const started: AsyncDisposable[] = []
  const use = <T extends AsyncDisposable>(one: T): T => {
    started.push(one)
    return one
  }
  const authority = await newAuthority('authority')
  const member = await authority.certify('member')
  const apiSession = {
    id: 'legacy',
    token: 'api-session',
    certFingerprints: [fingerprintOf(new X509Certificate(member.cert))],
    identityId: 'i',
  }
  const own = await authority.certify('controller', { dns: 'localhost' })
  const all = await Promise.all(
    (controllers.length > 0 ? controllers : [{}]).map(async (options) =>
      use(await startFakeController(own, authority.cert, [apiSession], options)),
    ),
  )
  const [controller] = all
  if (!controller) throw new Error('no controller')
  const identity = {
    id: 'router',
    name: 'router',
    client: await authority.certify('router'),
    server: await authority.certify('router', { dns: 'localhost' }),
    caPem: authority.cert,
  }
  const refusals: string[] = []
  const options = { identity, line, controllers: all.map(({ address }) => address), closeWaitMs: 500 }
  const start = async (more: Partial<RouterOptions> = {}) =>
    use(await startRouter({ ...options, onRefused: (_, err) => refusals.push(String(err)), ...more }))
  const sdk = async (url: string | undefined, apiSessionToken: string, certificate: Certificate = member) =>
    use(await connectSdk({ url: url ?? '', certificate, caPem: authority.cert, apiSessionToken }))
  return {
    authority,
    controller,
    controllers: all,
    refusals,
    start,
    sdk,
    /** Sends to the newest subscription. */
    sendState(state: DataState, from = controller) {
      from.send(modelType.state, DataState.encode(state).finish(), subscriptionOf(from))
    },
    sendChanges(set: Partial<DataStateChangeSet>, from = controller) {
      const body = DataStateChangeSet.encode(DataStateChangeSet.fromPartial(set)).finish()
      from.send(modelType.changeSet, body, subscriptionOf(from))
    },
    async [Symbol.asyncDispose]() {
      for (const one of started.reverse()) await one[Symbol.asyncDispose]()
    },
  }
}
type FakeController = Awaited<ReturnType<typeof startFakeController>>

const subscriptionOf = ({ subscriptions }: FakeController) =>
  new Map([[modelHeader.subscriptionId, encodeText(subscriptions.at(-1)?.subscriptionId ?? '')]])

const link = (kind: ModelPolicyMember, id: string, add = true, policyId = 'dial'): ModelEvent =>
  ModelEvent.fromPartial({
    servicePolicyChange: { policyId, relatedEntityIds: [id], relatedEntityType: kind, add },
  })
const policyOf = (id: string, policyType: ModelPolicyType): ModelEvent[] => [
  ModelEvent.fromPartial({ servicePolicy: { id, policyType } }),
  link(ModelPolicyMember.SERVICE, 's', true, id),
  link(ModelPolicyMember.IDENTITY, 'i', true, id),
]
const identity = ModelEvent.fromPartial({ identity: { id: 'i', name: 'member' } })
const authorityKey = ({ cert }: Authority): ModelEvent =>
  ModelEvent.fromPartial({
    publicKey: {
      kid: 'authority',
      data: new X509Certificate(cert).raw,
      usages: [ModelKeyUsage.CLIENT_CERTIFICATES],
    },
  })
/** A model in which identity `i` hosts and dials service `s`. */
const stateOf = (authority: Authority, endIndex = 10n): DataState => ({
  events: [
    identity,
    ModelEvent.fromPartial({ service: { id: 's' } }),
    ...policyOf('dial', ModelPolicyType.DIAL),
    ...policyOf('bind', ModelPolicyType.BIND),
    authorityKey(authority),
    tokens.keyEvent,
  ],
  endIndex,
  timelineId: 'timeline',
})

const sessionOf = (z_st: 'Dial' | 'Bind', z_asid: string, jti = randomUUID()): string =>
  tokens.sign({ z_t: 's', sub: 's', z_iid: 'i', z_st, z_asid, jti, z_leg: z_asid === 'legacy' })

test.each([
  ['has no group secret', { [groupedHeader.secret]: undefined }, 'no group secret'],
  ['cannot sign sessions', { [groupedHeader.capabilities]: Buffer.of(0x1e) }, 'signed sessions'],
])('a 2.0 router refuses a controller that %s', async (_what, answer, refusal) => {
  await using network = await startNetwork('2.0', { answer })
  await network.start()
  await expect.poll(() => network.refusals).toContainEqual(expect.stringContaining(refusal))
})

test('a 2.0 router keeps group and secret when it connects again', async () => {
  await using network = await startNetwork('2.0')
  await network.start()
  const { controller } = network
  await expect.poll(() => controller.hellos).toHaveLength(1)
  expect(controller.hellos[0]?.get(headerKey.type)?.toString()).toBe('ctrl.default')
  expect(controller.hellos[0]?.has(groupedHeader.secret)).toBe(false)
  controller.disconnect()
  await expect.poll(() => controller.hellos).toHaveLength(2)
  const [, again] = controller.hellos
  expect(again?.get(headerKey.connectionId)?.toString()).toBe('first-1')
  expect(again?.get(groupedHeader.secret)).toHaveLength(16)
  await expect.poll(() => network.refusals).toEqual([])
})

test('a router subscribes at once, follows the changes, and asks again after a gap', async () => {
  await using network = await startNetwork('2.0')
  const router = await network.start()
  const { controller } = network
  await expect.poll(() => controller.subscriptions).toMatchObject([{ currentIndex: 0n, timelineId: '' }])
  network.sendState(stateOf(network.authority))
  await expect.poll(() => router.model.index).toBe(10n)
  network.sendChanges({
    index: 12n,
    previousIndex: 10n,
    changes: [link(ModelPolicyMember.IDENTITY, 'i', false)],
  })
  await expect.poll(() => router.model.contents['service-policy'].get('dial')?.identities.size).toBe(0)
  router.model.renew()
  await expect.poll(() => controller.subscriptions).toHaveLength(2)
  const [first, renewed] = controller.subscriptions
  expect(renewed).toMatchObject({ renew: true, subscriptionId: first?.subscriptionId, currentIndex: 12n })
  expect(router.violations()).toEqual([])

  network.sendChanges({ index: 20n, previousIndex: 15n })
  await expect.poll(() => controller.subscriptions).toHaveLength(3)
  expect(controller.subscriptions[2]).toMatchObject({
    renew: false,
    currentIndex: 12n,
    timelineId: 'timeline',
  })
  expect(router.violations()).toEqual([expect.stringContaining('a gap')])
})

test('a router has one subscription, and moves it when its controller is gone', async () => {
  await using network = await startNetwork('2.0', { id: 'a' }, { id: 'b' })
  const router = await network.start()
  const [a, b] = network.controllers
  await expect.poll(() => router.controllers.all()).toHaveLength(2)
  const [source, other] = router.model.source === 'a' ? [a, b] : [b, a]
  expect(other?.subscriptions).toEqual([])
  network.sendState(stateOf(network.authority), source)
  await expect.poll(() => router.model.index).toBe(10n)
  other?.send(
    modelType.changeSet,
    DataStateChangeSet.encode(DataStateChangeSet.fromPartial({ index: 11n })).finish(),
  )
  await expect
    .poll(() => router.violations())
    .toContainEqual(expect.stringContaining('without a subscription'))
  expect(router.model.index).toBe(10n)
  await source?.[Symbol.asyncDispose]()
  await expect.poll(() => other?.subscriptions).toMatchObject([{ currentIndex: 10n, renew: false }])
})

test('a router of 1.6 has a model if its controllers have one, without ids of subscriptions', async () => {
  await using network = await startNetwork('1.6', { answer: { [headerKey.capabilities]: Buffer.of(0x1e) } })
  const router = await network.start()
  const { controller } = network
  await expect.poll(() => controller.subscriptions).toMatchObject([{ subscriptionId: '' }])
  expect(controller.hellos[0]?.has(groupedHeader.isGrouped)).toBe(false)
  network.sendState(stateOf(network.authority))
  await expect.poll(() => router.model.index).toBe(10n)
  await using without = await startNetwork('1.6')
  const { model } = await without.start()
  await expect.poll(() => without.controller.hellos).toHaveLength(1)
  expect(model.isOn).toBe(false)
})

/** A 2.0 router with a model. */
async function modelled() {
  const network = await startNetwork('2.0')
  const router = await network.start()
  await expect.poll(() => network.controller.subscriptions).toHaveLength(1)
  network.sendState(stateOf(network.authority))
  await expect.poll(() => router.model.index).toBe(10n)
  return { ...network, router }
}

test('stored sessions have signed tokens, and end by their ids', async () => {
  await using network = await modelled()
  const { router, controller } = network
  const host = await network.sdk(router.url, 'api-session')
  const client = await network.sdk(router.url, 'api-session')
  await expect(host.host(sessionOf('Dial', 'legacy'))).rejects.toThrow('a bind with a session to Dial')
  await expect(client.dial(sessionOf('Dial', 'other'))).rejects.toThrow('another API session')
  await expect(client.dial('unsigned')).rejects.toThrow('not a session token')
  await host.host(sessionOf('Bind', 'legacy'))
  const id = randomUUID()
  const connection = await client.dial(sessionOf('Dial', 'legacy', id))
  connection.write('hello')
  await once(connection, 'readable')
  controller.removeSession('another form', id)
  expect(await connection.ended).toBe('session closed')
  expect(router.violations()).toEqual([])
})

/** Applications of identity `i` with an access token each. */
async function withAccessTokens() {
  const network = await modelled()
  const { router, authority } = network
  const certificate = await authority.certify('by-token')
  const fingerprint = fingerprintOf(new X509Certificate(certificate.cert))
  const accessToken = (more = {}) =>
    tokens.sign({ z_t: 'a', sub: 'i', z_asid: 'oidc', z_cfs: [fingerprint], ...more })
  const host = await network.sdk(router.url, accessToken(), certificate)
  const client = await network.sdk(router.url, accessToken(), certificate)
  const hosted = await host.host(sessionOf('Bind', 'oidc'))
  const connection = await client.dial('s') // by the id of the service
  connection.write('hello')
  await once(connection, 'readable')
  return { ...network, certificate, accessToken, host, client, hosted, connection }
}

test('applications with access tokens are admitted by the model alone, and renew their tokens', async () => {
  await using network = await withAccessTokens()
  const { client, router, accessToken } = network
  await client.renew(accessToken())
  const { authority } = network
  const stranger = await authority.certify('stranger')
  const refused = await network.sdk(router.url, accessToken(), stranger)
  await once(refused.channel.closed, 'abort')
  const another = await newAuthority('another')
  const certificate = await another.certify('of-another')
  const z_cfs = [fingerprintOf(new X509Certificate(certificate.cert))]
  const ofAnother = await network.sdk(router.url, accessToken({ z_cfs }), certificate)
  await once(ofAnother.channel.closed, 'abort')
  await expect(client.renew(accessToken({ z_asid: 'other' }))).rejects.toThrow()
  expect(client.channel.closed.aborted).toBe(true)
  expect(router.violations()).toEqual([])
})

test('a policy that no longer grants ends what it granted', async () => {
  await using network = await withAccessTokens()
  network.sendChanges({
    index: 11n,
    previousIndex: 10n,
    changes: [link(ModelPolicyMember.IDENTITY, 'i', false)],
  })
  expect(await network.connection.ended).toBe('dial access lost')
  await expect(network.client.dial('s')).rejects.toThrow('no access to service')
  const changes = [link(ModelPolicyMember.IDENTITY, 'i', false, 'bind')]
  network.sendChanges({ index: 12n, previousIndex: 11n, changes })
  expect(await network.hosted.ended).toBe('bind access lost')
  expect(network.client.channel.closed.aborted).toBe(false)
})

test.each([
  ['the identity is disabled', [ModelEvent.fromPartial({ identity: { id: 'i', disabled: true } })]],
  [
    'the identity is deleted',
    [
      ...['dial', 'bind'].map((policy) => link(ModelPolicyMember.IDENTITY, 'i', false, policy)),
      { ...identity, action: ModelAction.DELETE },
    ],
  ],
  ['the API session is revoked', [revocation('oidc', 'API_SESSION')]],
  ['the identity is revoked', [revocation('i', 'IDENTITY')]],
])('channels of applications close when %s', async (_when, changes) => {
  await using network = await withAccessTokens()
  network.sendChanges({ index: 11n, previousIndex: 10n, changes })
  for (const { channel } of [network.client, network.host])
    await expect.poll(() => channel.closed.aborted).toBe(true)
  expect(network.router.violations()).toEqual([])
})

function revocation(id: string, type: string): ModelEvent {
  return ModelEvent.fromPartial({
    revocation: { id, type, expiresAt: { seconds: 4_000_000_000n, nanos: 0 } },
  })
}

test('posture checks are passed by what an application reports', async () => {
  await using network = await withAccessTokens()
  const { client } = network
  const check = { id: 'x', typeId: 'DOMAIN', domains: { domains: ['a.example'] } }
  const changes = [
    ModelEvent.fromPartial({ postureCheck: check }),
    link(ModelPolicyMember.POSTURE_CHECK, 'x'),
  ]
  client.report({ domain: 'a.example' })
  await client.dial('s')
  network.sendChanges({ index: 11n, previousIndex: 10n, changes })
  await expect.poll(() => network.router.model.index).toBe(11n)
  const connection = await client.dial('s')
  client.report({ domain: 'b.example' })
  expect(await connection.ended).toBe('dial access lost')
  await expect(client.dial('s')).rejects.toThrow('no access to service')
})

test('a validation reports what differs, and repairs it if it should', async () => {
  await using network = await modelled()
  const { controller, authority, router } = network
  const state = stateOf(authority)
  const validate = async (fix: boolean) => {
    const expected = { ...state, endIndex: 15n, events: state.events.filter(({ service }) => !service) }
    const events = expected.events.filter(
      ({ servicePolicyChange }) => servicePolicyChange?.relatedEntityType !== ModelPolicyMember.SERVICE,
    )
    const body = ValidateDataStateRequest.encode({ state: { ...expected, events }, fix }).finish()
    const reply = await controller.request(modelType.validate, body)
    expect(reply.type).toBe(modelType.validated)
    return ValidateDataStateResponse.decode(reply.body)
  }
  const answer = await validate(false)
  expect(answer.diffs.map(({ entityId, diffType }) => `${entityId} ${diffType}`)).toEqual([
    's added',
    'dial modified',
    'bind modified',
  ])
  expect([...answer.origEntityCounts]).toContainEqual(['Services', 0])
  expect([...answer.copyEntityCounts]).toContainEqual(['Services', 1])
  await validate(true)
  await expect.poll(() => controller.subscriptions.at(-1)).toMatchObject({ currentIndex: 15n })
  expect((await validate(false)).diffs).toEqual([])
  expect(router.violations()).toEqual([])
})

test('a router that starts again has the model that it has stored', async () => {
  await using network = await modelled()
  const { index, timeline, contents } = network.router.model
  await network.router[Symbol.asyncDispose]()
  const again = await network.start({ storedModel: { index, timeline, contents } })
  const subscription = { currentIndex: 10n, timelineId: 'timeline' }
  await expect.poll(() => network.controller.subscriptions.at(-1)).toMatchObject(subscription)
  expect(again.model.contents.service.size).toBe(1)
})

test('routers of 1.1 know nothing of a model', async () => {
  await using network = await startNetwork('1.1')
  const router = await network.start()
  await expect.poll(() => router.controllers.all()).toHaveLength(1)
  expect(network.controller.subscriptions).toEqual([])
  const { createTerminatorV2 } = capability
  expect(Number(router.controllers.any()?.capabilities) & (1 << createTerminatorV2)).toBeGreaterThan(0)
})
