import {
  CreateApiSessionRequest,
  CreateApiSessionResponse,
  CreateCircuitForServiceRequest,
  CreateCircuitForServiceResponse,
  CreateFabricTerminatorRequest,
  CreateTerminatorResult,
  CreateTunnelCircuitV2Request,
  CreateTunnelCircuitV2Response,
  CreateTunnelTerminatorRequest,
  CreateTunnelTerminatorResponse,
  CreateTunnelTerminatorV2Request,
  CreateTunnelTerminatorV2Response,
  ctrlType,
  decodeUint32,
  edgeErrorCode,
  edgeType,
  encodeBool,
  encodeText,
  errorHeader,
  headerKey,
  type Outgoing,
  ServiceList,
  TerminatorPrecedence,
  TerminatorRetryHint,
  tunnelHealthHeader,
  UpdateFabricTerminatorRequest,
  UpdateTunnelTerminatorRequest,
} from '@overlay/channel'
import { metrics } from '@overlay/process'
import { type Context, Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { type FindSessionDeps, openFindSession } from '../src/access/find-session.js'
import type { CircuitRequest } from '../src/circuits/circuits.js'
import { AccessRefused } from '../src/domain/router-access.js'
import { endTerminators } from '../src/store/terminator.js'
import { tunnelConcern } from '../src/tunnel/tunnel-concern.js'
import { type FakeRouter, fakeRouter, startTerminators } from './router-terminators.js'
import { context } from './routers.js'
import { log } from './store.js'

const services = new Map(
  ['wiki', 'blog', 'secret'].map((id) => [
    id,
    {
      ...{ id, name: `the ${id}`, terminatorStrategy: '' },
      ...{ encryptionRequired: id === 'blog', maxIdleTimeMillis: 0 },
    },
  ]),
)

const routers = new Map([
  ['r1', { isEdge: true }],
  ['r2', { isEdge: true }],
  ['transit', { isEdge: false }],
])

const hosting = {
  ...{ defaultHostingCost: 7, defaultHostingPrecedence: 'required', appData: { site: 'north' } },
  ...{ serviceHostingCosts: { wiki: 5 }, serviceHostingPrecedences: { wiki: 'failed' } },
}

const today = {
  hasDataModel: true,
  verifiesTokens: true,
  needsSignedSessions: true,
  isGrouped: true,
  comparesModel: true,
}

async function startTunnel() {
  const terminators = await startTerminators()
  const { db } = terminators
  const world = {
    apiSession: 'as1' as string | undefined,
    contentKey: 'key 1',
    opened: [] as { routerId: string; configTypes: string[]; env: string }[],
    created: [] as string[],
    listed: [] as Context[],
    now: 0,
    connections: [] as readonly { readonly features: { readonly hasDataModel: boolean } }[],
    circuits: [] as CircuitRequest[],
  }
  const position = { timeline: 'a', number: 1 }
  const createSession: FindSessionDeps['createSession'] = async ({ serviceId, type }, { caller }) => {
    if (serviceId === 'secret') throw new Fault('NOT_FOUND')
    world.created.push(`${caller.identityId} ${caller.apiSessionId} ${type} ${serviceId}`)
    const id = `${caller.apiSessionId} ${type} ${serviceId}`
    await db.query(sql`
      insert into session (id, token, type, api_session_id, service_id, identity_id)
      values (${id}, ${`token of ${id}`}, ${type}, ${caller.apiSessionId}, ${serviceId}, ${caller.identityId})`)
    return { json: Buffer.from(JSON.stringify({ id, token: 'eyJ.for.clients' })) }
  }
  const concern = tunnelConcern({
    identity: {
      async openRouterSession({ routerId, configTypes, envInfo }) {
        world.opened.push({ routerId, configTypes: [...configTypes], env: Buffer.from(envInfo).toString() })
        if (!world.apiSession) throw new Fault('NOT_FOUND')
        return {
          session: {
            ...{ id: world.apiSession, token: `token of ${world.apiSession}`, identityId: routerId },
            ...{ identityName: 'router one', isAdmin: false, isPartial: false, configTypes: ['t1'] },
            ...{ json: Buffer.alloc(0), createdAtMs: 0, lastActivityAtMs: 0, timeoutSeconds: 1800 },
            ...{ position, endsInMs: 0, demandsToken: false, secondTokenMs: 0 },
          },
          hosting: Buffer.from(JSON.stringify(hosting)),
        }
      },
    },
    now: () => world.now,
    apiSessions: { byId: (id) => (id === world.apiSession ? {} : undefined) },
    policy: {
      calls: {
        async getHeader() {
          return { lastChangeAtMs: 0, positions: { policy: position }, contentKey: world.contentKey }
        },
      },
      entities: {
        async list({ query }, context) {
          world.listed.push(context)
          const isFirst = query?.after.length === 0
          const row = (id: string) => ({
            ...{ id, name: `the ${id}`, permissions: ['Dial', 'Invalid'], encryptionRequired: id === 'blog' },
            ...{ config: { 'host.v1': { port: 80 } }, tags: { a: 1 } },
          })
          return {
            rows: Buffer.from(JSON.stringify([row(isFirst ? 'wiki' : 'blog')])),
            ...{ total: 2, limit: '', offset: 0, contentKey: '' },
            next: Buffer.from(isFirst ? 'more' : ''),
          }
        },
      },
    },
    directory: { get: (id) => routers.get(id) },
    services: {
      find: async (id) => services.get(id),
      findByName: async (name) => [...services.values()].find((service) => service.name === name),
    },
    findSession: openFindSession({ db, createSession }),
    async checkRouter(routerId, identityId) {
      if (routerId !== 'r1' || identityId !== 'r1')
        throw new AccessRefused(edgeErrorCode.invalidEdgeRouter, 'invalid edge router for session')
    },
    terminators: terminators.concern,
    changeLog: terminators.changeLog,
    presence: { of: () => world.connections },
    circuits: {
      async open(request) {
        world.circuits.push(request)
        return { id: 'c1', address: 'in', peerData: new Map([[1003, Buffer.from('k')]]), tags: { a: 'b' } }
      },
      end: async () => true,
    },
    log,
  })
  return {
    ...terminators,
    tunnel: concern,
    world,
    router: fakeRouter(() => concern, 'r1'),
    stranger: fakeRouter(() => concern, 'r2'),
    transit: fakeRouter(() => concern, 'transit'),
    today: fakeRouter(() => concern, 'r1', today),
    [Symbol.asyncDispose]: () => terminators[Symbol.asyncDispose](),
  }
}

type Started = Awaited<ReturnType<typeof startTunnel>>

const body = (answer: Outgoing | undefined) => Buffer.from(answer?.body ?? '')
const refusal = ([answer]: readonly Outgoing[]) => ({
  type: answer?.type,
  code: decodeUint32(answer?.headers?.get(errorHeader.code) ?? Buffer.alloc(4)),
  text: body(answer).toString(),
})

const login = ({ router }: Started) =>
  router.ask(edgeType.createApiSession, CreateApiSessionRequest, {
    envInfo: { arch: 'amd64', os: 'linux', osRelease: '', osVersion: '', hostname: '', domain: '' },
    sdkInfo: undefined,
    configTypes: ['host.v1'],
  })

const terminator = (members: Partial<CreateTunnelTerminatorRequest> = {}): CreateTunnelTerminatorRequest => ({
  serviceName: 'the wiki',
  sessionId: '',
  address: 't1',
  peerData: new Map(),
  cost: 3,
  precedence: TerminatorPrecedence.REQUIRED,
  instanceId: '',
  instanceSecret: Buffer.alloc(0),
  startTime: 1_700_000_000_000n,
  ...members,
})

/** Of the router itself, without a session in the request. */
const ownTerminator = (
  members: Partial<CreateFabricTerminatorRequest> = {},
): CreateFabricTerminatorRequest => ({
  ...{ serviceId: 'wiki', binding: '', address: 'udp:host:1', peerData: new Map(), cost: 1 },
  ...{ precedence: TerminatorPrecedence.REQUIRED, instanceId: '', instanceSecret: Buffer.alloc(0) },
  ...members,
})

async function hostItself(router: FakeRouter, members: Partial<CreateFabricTerminatorRequest> = {}) {
  const request = ownTerminator(members)
  const [answer] = await router.ask(ctrlType.createTerminator, CreateFabricTerminatorRequest, request)
  const isSuccess = answer?.headers?.get(headerKey.resultSuccess)?.[0] === 1
  return { isSuccess, text: body(answer).toString() }
}

/** As an administrator does. */
const createAsAdministrator = ({ db }: Started, id: string, routerId: string) =>
  db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address)
    values (${id}, 'wiki', ${routerId}, 'transport', 'tcp:host:1')`)

const host = ({ router }: Started, members: Partial<CreateTunnelTerminatorRequest> = {}) =>
  router.ask(edgeType.createTunnelTerminator, CreateTunnelTerminatorRequest, terminator(members))

test('a router logs in and learns how it hosts services', async () => {
  await using started = await startTunnel()
  const [answer] = await login(started)
  expect(answer?.type).toBe(edgeType.createApiSessionResponse)
  expect(CreateApiSessionResponse.decode(body(answer))).toEqual({
    sessionId: 'as1',
    token: 'token of as1',
    refreshIntervalSeconds: 1790,
    identityId: 'r1',
    identityName: 'router one',
    defaultHostingPrecedence: TerminatorPrecedence.REQUIRED,
    defaultHostingCost: 7,
    appDataJson: '{"site":"north"}',
    servicePrecedences: new Map([['wiki', TerminatorPrecedence.FAILED]]),
    serviceCosts: new Map([['wiki', 5]]),
  })
  expect(started.world.opened).toMatchObject([{ routerId: 'r1', configTypes: ['host.v1'] }])
  expect(JSON.parse(started.world.opened[0]?.env ?? '')).toMatchObject({ arch: 'amd64', os: 'linux' })
})

test('a router without an identity is refused', async () => {
  await using started = await startTunnel()
  started.world.apiSession = undefined
  const expected = { type: edgeType.error, code: 7, text: 'tunneling not enabled' }
  expect(refusal(await login(started))).toEqual(expected)
  expect(refusal(await host(started))).toEqual(expected)
  expect(await started.router.askRaw(edgeType.listServices, Buffer.alloc(0))).toEqual([])
  expect(started.router.sent).toEqual([])
})

test('a router receives the list of its services, and again only after a change', async () => {
  await using started = await startTunnel()
  const { router, world } = started
  await login(started)
  const poll = async (lastUpdate: Uint8Array) => {
    router.sent.length = 0
    await router.askRaw(edgeType.listServices, Buffer.from(lastUpdate))
    return router.sent.map((message) => ServiceList.decode(body(message)))
  }
  const [first] = await poll(Buffer.alloc(0))
  if (!first) throw new Error('no list')
  expect(first.lastUpdate.length).toBeLessThanOrEqual(50)
  expect(first.services).toEqual(
    ['wiki', 'blog'].map((id) => ({
      ...{ id, name: `the ${id}`, permissions: ['Dial'], encryption: id === 'blog' },
      ...{ config: Buffer.from('{"host.v1":{"port":80}}'), tags: Buffer.from('{"a":1}') },
    })),
  )
  expect(world.listed[0]?.caller).toEqual({
    ...{ identityId: 'r1', identityName: 'router one', apiSessionId: 'as1', isAdmin: false },
    configTypes: ['t1'],
  })
  for (let i = 0; i < 3; i++) expect(await poll(first.lastUpdate)).toEqual([])
  expect(world.listed).toHaveLength(2)

  world.contentKey = 'key 2'
  const [second] = await poll(first.lastUpdate)
  expect(second?.services).toHaveLength(2)
  expect(await poll(second?.lastUpdate ?? Buffer.alloc(0))).toEqual([])
})

test('a token that is no token closes the channel', async () => {
  await using started = await startTunnel()
  await expect(started.router.askRaw(edgeType.listServices, Buffer.alloc(51))).rejects.toThrow('51 bytes')
})

test('a router hosts a service by a session of its own', async () => {
  await using started = await startTunnel()
  await login(started)
  const peerData = new Map([[1003, Buffer.from([1])]])
  for (let i = 0; i < 2; i++) {
    const [answer] = await host(started, { peerData })
    expect(answer?.type).toBe(edgeType.createTunnelTerminatorResponse)
    expect(CreateTunnelTerminatorResponse.decode(body(answer))).toEqual({
      apiSession: undefined,
      session: { sessionId: 'as1 Bind wiki', token: 'token of as1 Bind wiki' },
      terminatorId: 't1',
      startTime: 1_700_000_000_000n,
    })
  }
  expect(started.world.created).toEqual(['r1 as1 Bind wiki'])
  expect(await started.rows()).toMatchObject([
    {
      ...{ id: 't1', address: 't1', binding: 'tunnel', host_id: 'r1', router_id: 'r1', is_system: true },
      ...{ cost: 3, precedence: 'required', session_id: 'as1 Bind wiki', peer_data: { 1003: 'AQ==' } },
    },
  ])
})

test('a router learns of an API session that has replaced its own', async () => {
  await using started = await startTunnel()
  await login(started)
  started.world.apiSession = 'as2'
  started.world.now += 60_000
  const responses = [await host(started), await host(started, { address: 't2' })].map(([answer]) =>
    CreateTunnelTerminatorResponse.decode(body(answer)),
  )
  expect(responses.map(({ apiSession }) => apiSession?.token)).toEqual(['token of as2', undefined])
})

test('a create that fails is answered', async () => {
  await using started = await startTunnel()
  const { invalidService, invalidEdgeRouter, invalidCost, invalidTerminator } = edgeErrorCode
  const codes = [
    await host(started, { serviceName: 'nothing' }),
    await host(started, { serviceName: 'the secret' }),
    await host(started, { cost: 70_000 }),
    await host(started, { address: '' }),
    await started.stranger.ask(
      edgeType.createTunnelTerminator,
      CreateTunnelTerminatorRequest,
      terminator({ address: 't9' }),
    ),
  ].map((answers) => refusal(answers).code)
  expect(codes).toEqual([invalidService, invalidService, invalidCost, invalidTerminator, invalidEdgeRouter])
  await host(started)
  await started.db.query(sql`update terminator set binding = 'edge'`)
  expect(refusal(await host(started)).text).toBe(
    'selected id conflicts with terminator for different binding',
  )
})

test('a router of another generation hosts by the id of a service', async () => {
  await using started = await startTunnel()
  const [answer] = await started.router.ask(
    edgeType.createTunnelTerminatorV2,
    CreateTunnelTerminatorV2Request,
    { ...terminator(), serviceId: 'blog' },
  )
  expect(answer?.type).toBe(edgeType.createTunnelTerminatorV2Response)
  expect(await started.rows()).toMatchObject([{ id: 't1', service_id: 'blog' }])
})

test('a router of 2.x finds the terminator of each answer, also of a refusal, with what to do', async () => {
  await using started = await startTunnel()
  const outcomes = []
  for (const serviceId of ['unknown', 'blog']) {
    const [answer] = await started.today.ask(
      edgeType.createTunnelTerminatorV2,
      CreateTunnelTerminatorV2Request,
      { ...terminator(), serviceId },
    )
    expect(answer?.type).toBe(edgeType.createTunnelTerminatorV2Response)
    const { terminatorId, result, errorCode, retryHint } = CreateTunnelTerminatorV2Response.decode(
      body(answer),
    )
    outcomes.push([terminatorId, result, errorCode, retryHint])
  }
  const { OTHER, SUCCESS } = CreateTerminatorResult
  expect(outcomes).toEqual([
    ['t1', OTHER, edgeErrorCode.invalidService, TerminatorRetryHint.NOT_RETRIABLE],
    ['t1', SUCCESS, 0, TerminatorRetryHint.DEFAULT],
  ])
})

test('a router changes and deletes its tunnel terminators', async () => {
  await using started = await startTunnel()
  await host(started)
  const change = {
    cost: 9,
    precedence: TerminatorPrecedence.DEFAULT,
    updatePrecedence: true,
    updateCost: true,
  }
  const [updated] = await started.router.ask(edgeType.updateTunnelTerminator, UpdateTunnelTerminatorRequest, {
    terminatorId: 't1',
    ...change,
  })
  expect(updated).toEqual({ type: edgeType.updateTunnelTerminatorResponse })
  expect(await started.rows()).toMatchObject([{ cost: 9, precedence: 'default' }])
  const [removed] = await started.router.askRaw(edgeType.removeTunnelTerminator, Buffer.from('t1'))
  expect(removed).toEqual({ type: edgeType.removeTunnelTerminatorResponse })
  expect(await started.rows()).toEqual([])
})

test('a router that policy lets host a service creates terminators for it, which end with its session', async () => {
  await using started = await startTunnel()
  const { isSuccess, text } = await hostItself(started.router)
  expect(isSuccess).toBe(true)
  expect(await started.rows()).toMatchObject([
    {
      ...{ id: text, address: 'udp:host:1', binding: 'udp', precedence: 'required', cost: 1 },
      ...{ host_id: 'r1', session_id: 'as1 Bind wiki', is_system: false, is_by_router: false },
    },
  ])
  await started.db.query(sql`delete from session where id = 'as1 Bind wiki'`)
  await started.concern.endOfSessions(['as1 Bind wiki'])
  expect([await started.rows(), started.ended]).toEqual([[], [text]])
})

test('a tunneler of today hosts again when its API session is deleted, unless it may no longer host', async () => {
  await using started = await startTunnel()
  const { world, tunnel, db } = started
  const members = {
    instanceId: 'a',
    instanceSecret: Buffer.from('s'),
    peerData: new Map([[1, Buffer.from('p')]]),
  }
  await started.router.ask(
    edgeType.createTunnelTerminator,
    CreateTunnelTerminatorRequest,
    terminator(members),
  )
  const stored = await started.rows()
  const deleteApiSession = async (id: string, next: string | undefined) => {
    await db.query(sql`delete from session where api_session_id = ${id}`)
    world.apiSession = next
    await tunnel.endOfSessions([`${id} Bind wiki`])
  }
  world.connections = [{ features: today }]
  await deleteApiSession('as1', 'as2')
  const again = stored.map((row) => ({ ...row, session_id: 'as2 Bind wiki' }))
  await expect.poll(started.rows).toEqual(again)
  const asked = world.opened.length
  await deleteApiSession('as2', undefined)
  await expect.poll(() => world.opened.length).toBe(asked + 1)
  expect(await started.rows()).toEqual([])
})

test('a tunneler without the data model creates its terminators again itself', async () => {
  await using started = await startTunnel()
  const { world, tunnel, db } = started
  await started.router.ask(edgeType.createTunnelTerminator, CreateTunnelTerminatorRequest, terminator())
  world.connections = [{ features: { hasDataModel: false } }]
  await db.query(sql`delete from session`)
  world.apiSession = 'as2'
  const asked = world.opened.length
  await tunnel.endOfSessions(['as1 Bind wiki'])
  expect([await started.rows(), world.opened.length]).toEqual([[], asked])
})

test('a router without an identity hosts only what an administrator has created for it', async () => {
  await using started = await startTunnel()
  started.world.apiSession = undefined
  const refused = { isSuccess: false, text: 'the router may not host this service' }
  expect(await hostItself(started.router)).toEqual(refused)
  await createAsAdministrator(started, 'other', 'r2')
  expect(await hostItself(started.router)).toEqual(refused)
  await createAsAdministrator(started, 'own', 'r1')
  const { isSuccess, text } = await hostItself(started.router)
  expect(isSuccess).toBe(true)
  expect(await hostItself(started.router, { serviceId: 'blog' })).toEqual(refused)
  const created = (await started.rows()).find(({ id }) => id === text)
  expect(created).toMatchObject({ host_id: '', session_id: null, is_by_router: true, precedence: 'required' })
})

test('terminators of a router end with the last one that an administrator has created for it', async () => {
  await using started = await startTunnel()
  started.world.apiSession = undefined
  await createAsAdministrator(started, 'own', 'r1')
  await createAsAdministrator(started, 'second', 'r1')
  const { text } = await hostItself(started.router)
  const deleteAsAdministrator = (id: string) =>
    started.changeLog.write(context, async (tx) => ({
      result: undefined,
      changes: await endTerminators(tx, sql`id = ${id}`),
    }))
  await deleteAsAdministrator('own')
  expect((await started.rows()).map(({ id }) => id).sort()).toEqual([text, 'second'].sort())
  await deleteAsAdministrator('second')
  await expect.poll(started.rows).toEqual([])
  expect(started.ended).toEqual([text])
})

test('a transit router hosts nothing, whatever an administrator has created', async () => {
  await using started = await startTunnel()
  await started.db.query(sql`insert into router (id, name, is_edge) values ('transit', 'transit', false)`)
  await createAsAdministrator(started, 'own', 'transit')
  expect(await hostItself(started.transit)).toEqual({
    isSuccess: false,
    text: 'a transit router hosts no services',
  })
})

test.each([
  { serviceId: 'nothing' },
  { address: '' },
  { address: 'tcp:<script>' },
  { binding: 'a"b' },
  { instanceId: '<b>' },
  { cost: 70_000 },
])('a terminator of a router with %j is refused', async (members) => {
  await using started = await startTunnel()
  expect((await hostItself(started.router, members)).isSuccess).toBe(false)
  expect(await started.rows()).toEqual([])
})

test('a router does not change the terminators of administrators', async () => {
  await using started = await startTunnel()
  await createAsAdministrator(started, 'own', 'r1')
  const change = { ...{ cost: 0, updateCost: false }, updatePrecedence: true }
  const request = { terminatorId: 'own', precedence: TerminatorPrecedence.REQUIRED, ...change }
  const [answer] = await started.r1.ask(ctrlType.updateTerminator, UpdateFabricTerminatorRequest, request)
  expect(body(answer).toString()).toBe('terminator own is that of an administrator')
  expect(await started.rows()).toMatchObject([{ precedence: 'default' }])
})

test('a router dials a service by a session of its own', async () => {
  await using started = await startTunnel()
  await login(started)
  const request: CreateCircuitForServiceRequest = {
    ...{ sessionId: '', serviceName: 'the wiki', terminatorInstanceId: 'a' },
    peerData: new Map([[1112, Buffer.from('x')]]),
  }
  const { router } = started
  const answers = await router.ask(edgeType.createCircuitForService, CreateCircuitForServiceRequest, request)
  await expect.poll(() => answers).toHaveLength(1)
  const [answer] = answers
  expect(answer?.type).toBe(edgeType.createCircuitForServiceResponse)
  const circuit = {
    ...{ circuitId: 'c1', address: 'in', tags: new Map([['a', 'b']]) },
    peerData: new Map([[1003, Buffer.from('k')]]),
  }
  expect(CreateCircuitForServiceResponse.decode(body(answer))).toEqual({
    ...circuit,
    apiSession: undefined,
    session: { sessionId: 'as1 Dial wiki', token: 'token of as1 Dial wiki' },
  })
  const opened = {
    ...{ routerId: 'r1', identityId: 'r1', sessionId: 'as1 Dial wiki', serviceId: 'wiki', instanceId: 'a' },
    peerData: request.peerData,
  }
  const others = await router.ask(edgeType.createTunnelCircuitV2, CreateTunnelCircuitV2Request, request)
  await expect.poll(() => others).toHaveLength(1)
  expect(CreateTunnelCircuitV2Response.decode(body(others[0]))).toEqual(circuit)
  expect(started.world.circuits).toEqual([opened, opened])
  expect(started.world.created).toEqual(['r1 as1 Dial wiki'])
})

test('health checks are counted', async () => {
  await using started = await startTunnel()
  const count = async () => {
    const { values } = await metrics.healthChecks.get()
    return values.find(({ labels }) => labels.result === 'failed')?.value ?? 0
  }
  const before = await count()
  await started.router.askRaw(
    edgeType.tunnelHealthEvent,
    Buffer.alloc(0),
    new Map([
      [tunnelHealthHeader.terminatorId, encodeText('t1')],
      [tunnelHealthHeader.checkPassed, encodeBool(false)],
    ]),
  )
  expect((await count()) - before).toBe(1)
})
