import {
  CreateTerminatorRequest,
  CreateTerminatorResult,
  CreateTerminatorV2Request,
  CreateTerminatorV2Response,
  ctrlType,
  decodeUint32,
  edgeErrorCode,
  edgeType,
  errorHeader,
  headerKey,
  type Outgoing,
  RemoveFabricTerminatorsRequest,
  RemoveTerminatorRequest,
  TerminatorPrecedence,
  TerminatorRetryHint,
  UpdateFabricTerminatorRequest,
  UpdateTerminatorRequest,
} from '@overlay/channel'
import { metrics } from '@overlay/process'
import { Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { creationFailure } from '../src/terminators/creation-outcome.js'
import { CURRENT_FEATURES, type FakeRouter, startTerminators } from './router-terminators.js'
import { waitingFor } from './store.js'

const create = (members: Partial<CreateTerminatorV2Request> = {}): CreateTerminatorV2Request => ({
  address: 't1',
  sessionToken: 'of-alice',
  fingerprints: [],
  peerData: new Map(),
  cost: 0,
  precedence: TerminatorPrecedence.DEFAULT,
  instanceId: '',
  instanceSecret: Buffer.alloc(0),
  apiSessionToken: '',
  ...members,
})

async function createV2(router: FakeRouter, members: Partial<CreateTerminatorV2Request> = {}) {
  const [answer, ...more] = await router.ask(
    edgeType.createTerminatorV2,
    CreateTerminatorV2Request,
    create(members),
  )
  expect(more).toEqual([])
  expect(answer?.type).toBe(edgeType.createTerminatorV2Response)
  return CreateTerminatorV2Response.decode(Buffer.from(answer?.body ?? ''))
}

const update = (members: Partial<UpdateTerminatorRequest>): UpdateTerminatorRequest => ({
  sessionToken: 'of-alice',
  fingerprints: [],
  terminatorId: 't1',
  cost: 0,
  precedence: TerminatorPrecedence.DEFAULT,
  updatePrecedence: false,
  updateCost: false,
  apiSessionToken: '',
  ...members,
})

/** Routers before 2.x get neither. */
const withoutHint = { errorCode: 0, retryHint: TerminatorRetryHint.DEFAULT }

const isSuccess = (answer: Outgoing | undefined) => answer?.headers?.get(headerKey.resultSuccess)?.[0] === 1
const text = (answer: Outgoing | undefined) => Buffer.from(answer?.body ?? '').toString()

async function refusals(): Promise<number> {
  const { values } = await metrics.routerMessagesForbidden.get()
  return values.reduce((sum, { value }) => sum + value, 0)
}

test('a terminator that a router creates has the host, the secret and the data for clients', async () => {
  await using started = await startTerminators()
  const peerData = new Map([
    [1003, Buffer.from([0, 255, 1])],
    [1011, Buffer.from('app')],
  ])
  expect(
    await createV2(started.r1, {
      peerData,
      cost: 7,
      precedence: TerminatorPrecedence.REQUIRED,
      instanceId: 'a',
      instanceSecret: Buffer.from('secret'),
    }),
  ).toEqual({ terminatorId: 't1', result: CreateTerminatorResult.SUCCESS, message: '', ...withoutHint })
  expect(await started.rows()).toEqual([
    {
      id: 't1',
      service_id: 'wiki',
      router_id: 'r1',
      binding: 'edge',
      address: 't1',
      instance_id: 'a',
      identity_secret: Buffer.from('secret').toString('base64'),
      host_id: 'alice',
      cost: 7,
      precedence: 'required',
      saved_precedence: null,
      session_id: 'of-alice',
      peer_data: { 1003: 'AP8B', 1011: 'YXBw' },
      is_system: true,
      is_by_router: false,
    },
  ])
  expect(await started.audit()).toEqual(['alice: t1 created'])
  const { rows } = await started.db.query(sql`select after::text from audit`)
  expect(JSON.stringify(rows)).not.toContain(Buffer.from('secret').toString('base64'))
})

test('a repeated create is answered and writes nothing', async () => {
  await using started = await startTerminators()
  await createV2(started.r1)
  const version = async () =>
    (await started.db.query(sql`select xmin::text, ctid::text from terminator`)).rows
  const before = await version()
  expect((await createV2(started.r1)).result).toBe(CreateTerminatorResult.SUCCESS)
  expect(await version()).toEqual(before)
  expect(await started.audit()).toEqual(['alice: t1 created'])
})

test('a repeated create changes cost and precedence', async () => {
  await using started = await startTerminators()
  await createV2(started.r1)
  await createV2(started.r1, { cost: 5, precedence: TerminatorPrecedence.FAILED })
  expect(await started.rows()).toMatchObject([{ cost: 5, precedence: 'failed' }])
  expect(await started.audit()).toEqual(['alice: t1 created', 'alice: t1 updated'])
})

test.each<[Partial<CreateTerminatorV2Request>, CreateTerminatorResult, unknown]>([
  [{ address: '' }, CreateTerminatorResult.OTHER, 'provided terminator id is blank'],
  [{ sessionToken: 'unknown' }, CreateTerminatorResult.INVALID_SESSION, 'invalid session'],
  [
    { cost: 65_536 },
    CreateTerminatorResult.OTHER,
    'invalid cost 65536. cost must be between 0 and 65535 inclusive',
  ],
  [{ precedence: 7 as TerminatorPrecedence }, CreateTerminatorResult.OTHER, 'invalid precedence: 7'],
  [{ address: '<script>' }, CreateTerminatorResult.OTHER, 'invalid terminator id'],
  [{ instanceId: 'a\nb' }, CreateTerminatorResult.OTHER, 'invalid instance id'],
  [{ address: 'x'.repeat(201) }, CreateTerminatorResult.OTHER, expect.stringContaining('too long')],
  [
    { peerData: new Map([[1, Buffer.alloc(70_000)]]) },
    CreateTerminatorResult.OTHER,
    expect.stringContaining('bytes of peer data'),
  ],
])('a create with %j is answered with its id and the reason', async (members, result, message) => {
  await using started = await startTerminators()
  const terminatorId = members.address ?? 't1'
  expect(await createV2(started.r1, members)).toEqual({ terminatorId, result, message, ...withoutHint })
  expect(await started.rows()).toEqual([])
})

test.each<[Partial<CreateTerminatorV2Request>, number, number]>([
  [{ sessionToken: 'unknown' }, edgeErrorCode.invalidSession, TerminatorRetryHint.START_OVER],
  [{ cost: 65_536 }, edgeErrorCode.invalidCost, TerminatorRetryHint.NOT_RETRIABLE],
  [{ address: '<script>' }, edgeErrorCode.invalidTerminator, TerminatorRetryHint.NOT_RETRIABLE],
  [{ sessionToken: 'of-bob' }, edgeErrorCode.internal, TerminatorRetryHint.DEFAULT],
])(
  'routers of 2.x learn from the refusal of %j what the client is to do',
  async (members, errorCode, retryHint) => {
    await using started = await startTerminators()
    await createV2(started.r1)
    const answer = await createV2(started.current, members)
    expect(answer).toMatchObject({ result: CreateTerminatorResult.OTHER, errorCode, retryHint })
  },
)

test('routers of 2.x try a create again later while the database is unavailable', async () => {
  const outcome = creationFailure({ features: CURRENT_FEATURES }, new Fault('UNAVAILABLE'))
  expect(outcome).toMatchObject({ result: CreateTerminatorResult.BUSY, retryHint: TerminatorRetryHint.BUSY })
})

test('an id belongs to one router and one host', async () => {
  await using started = await startTerminators()
  await createV2(started.r1)
  const conflict = CreateTerminatorResult.ID_CONFLICT
  expect(await createV2(started.r2)).toMatchObject({ result: conflict, terminatorId: 't1' })
  expect((await createV2(started.r1, { sessionToken: 'of-bob' })).result).toBe(conflict)
  expect(await started.rows()).toMatchObject([{ router_id: 'r1', host_id: 'alice' }])
})

test('an instance of a service belongs to one host', async () => {
  await using started = await startTerminators()
  await createV2(started.r1, { instanceId: 'a' })
  const other = { sessionToken: 'of-bob', instanceId: 'a' }
  expect(await createV2(started.r2, { ...other, address: 't2' })).toEqual({
    terminatorId: 't2',
    result: CreateTerminatorResult.OTHER,
    message: 'sibling terminator t1 with shared identity a belongs to different identity',
    ...withoutHint,
  })
  expect((await createV2(started.r2, { address: 't3', instanceId: 'a' })).result).toBe(0)
  expect((await createV2(started.r2, { ...other, address: 't4', instanceId: 'b' })).result).toBe(0)
})

test('creates at the same time share their statements, and each has its own answer', async () => {
  await using started = await startTerminators()
  const many = Array.from({ length: 150 }, (_, i) => `t${1000 + i}`)
  const answers = await Promise.all([
    ...many.map((address) => createV2(started.r1, { address, cost: 3 })),
    createV2(started.r1, { address: 't1000', cost: 4 }), // twice in one batch: the last one counts
    createV2(started.r2, { address: 't1001' }),
    createV2(started.r1, { address: 'bad', sessionToken: 'unknown' }),
  ])
  expect(answers.slice(0, 151).every(({ result }) => result === 0)).toBe(true)
  expect(answers.slice(151).map(({ result }) => result)).toEqual([1, 4])
  const rows = await started.rows()
  expect(rows).toHaveLength(150)
  expect(rows[0]).toMatchObject({ id: 't1000', cost: 4, router_id: 'r1' })
})

test('a terminator that another replica creates at the same time is found', async () => {
  await using started = await startTerminators()
  const { db } = started
  let creating: ReturnType<typeof createV2> | undefined
  await db.transaction(undefined, async (tx) => {
    await tx.query(sql`
      insert into terminator (id, service_id, router_id, binding, address, host_id, session_id)
      values ('t1', 'wiki', 'r1', 'edge', 't1', 'alice', 'of-alice')`)
    creating = createV2(started.r1)
    await waitingFor(db)
  })
  expect((await creating)?.result).toBe(CreateTerminatorResult.SUCCESS)
})

test('no terminator is created for a session that has ended', async () => {
  await using started = await startTerminators()
  await started.db.query(sql`delete from session where id = 'of-alice'`)
  expect((await createV2(started.r1)).result).toBe(CreateTerminatorResult.INVALID_SESSION)
})

test('no terminator is created for a router or a service that is deleted', async () => {
  await using started = await startTerminators()
  await started.db.query(sql`delete from router where id = 'r2'`)
  expect(await createV2(started.r2)).toMatchObject({ result: 2, message: 'invalid edge router' })
  await started.db.query(sql`insert into deleted_entity (kind, id) values ('services', 'wiki')`)
  expect(await createV2(started.r1)).toMatchObject({ result: 2, message: 'invalid service' })
})

test('a router of the first generation receives the id of a new terminator', async () => {
  await using started = await startTerminators()
  const request: CreateTerminatorRequest = create()
  const [answer] = await started.r1.ask(edgeType.createTerminator, CreateTerminatorRequest, request)
  expect(answer?.type).toBe(edgeType.createTerminatorResponse)
  expect(await started.rows()).toMatchObject([
    { id: text(answer), address: 'hosted:of-alice', binding: 'edge' },
  ])
  const [refused] = await started.r1.ask(edgeType.createTerminator, CreateTerminatorRequest, {
    ...request,
    sessionToken: 'unknown',
  })
  expect(refused?.type).toBe(edgeType.error)
  expect(decodeUint32(refused?.headers?.get(errorHeader.code) ?? Buffer.alloc(0))).toBe(3)
})

test('an update changes what it names', async () => {
  await using started = await startTerminators()
  await createV2(started.r1, { cost: 1 })
  const send = (members: Partial<UpdateTerminatorRequest>) =>
    started.r1.ask(edgeType.updateTerminator, UpdateTerminatorRequest, update(members))
  const [answer] = await send({ cost: 9, updateCost: true })
  expect(answer).toEqual({ type: edgeType.updateTerminatorResponse })
  expect(await started.rows()).toMatchObject([{ cost: 9, precedence: 'default' }])
  await send({ precedence: TerminatorPrecedence.FAILED, updatePrecedence: true })
  expect(await started.rows()).toMatchObject([{ cost: 9, precedence: 'failed' }])
  await send({ cost: 9, updateCost: true })
  expect(await started.audit()).toEqual(['alice: t1 created', 'alice: t1 updated', 'alice: t1 updated'])
  const [refused] = await send({ cost: 70_000, updateCost: true })
  expect(refused?.type).toBe(edgeType.error)
})

test('a router changes and deletes its own terminators only', async () => {
  await using started = await startTerminators()
  await createV2(started.r1)
  await createV2(started.r2, { address: 't2' })
  const before = await refusals()
  const [updated] = await started.r2.ask(
    edgeType.updateTerminator,
    UpdateTerminatorRequest,
    update({ cost: 9, updateCost: true }),
  )
  expect(text(updated)).toBe('terminator t1 belongs to another router')
  const [fabric] = await started.r2.ask(ctrlType.updateTerminator, UpdateFabricTerminatorRequest, {
    ...update({ cost: 9, updateCost: true }),
  })
  expect(isSuccess(fabric)).toBe(false)
  const [removed] = await started.r2.ask(ctrlType.removeTerminators, RemoveFabricTerminatorsRequest, {
    terminatorIds: ['t1', 't2', 'unknown'],
  })
  expect(isSuccess(removed)).toBe(false)
  expect(await started.rows()).toMatchObject([{ id: 't1', cost: 0 }])
  expect((await refusals()) - before).toBe(3)
})

test('a router changes terminators for their own host only', async () => {
  await using started = await startTerminators()
  await createV2(started.r1)
  const foreign = update({ sessionToken: 'of-bob', cost: 9, updateCost: true })
  const [answer] = await started.r1.ask(edgeType.updateTerminator, UpdateTerminatorRequest, foreign)
  expect(text(answer)).toBe('terminator t1 belongs to another host')
  expect(await started.rows()).toMatchObject([{ cost: 0 }])
})

test('deletes may be repeated', async () => {
  await using started = await startTerminators()
  await createV2(started.r1)
  await createV2(started.r1, { address: 't2' })
  const remove = () =>
    started.r1.ask(ctrlType.removeTerminators, RemoveFabricTerminatorsRequest, { terminatorIds: ['t1'] })
  for (let i = 0; i < 2; i++) expect(isSuccess((await remove())[0])).toBe(true)
  const [answer] = await started.r1.ask(edgeType.removeTerminator, RemoveTerminatorRequest, {
    ...update({ terminatorId: 't2' }),
  })
  expect(answer).toEqual({ type: edgeType.removeTerminatorResponse })
  expect(await started.rows()).toEqual([])
  expect(await started.audit()).toEqual(
    expect.arrayContaining(['alice: t1 created', 'alice: t2 created', 'r1: t1 deleted', 'r1: t2 deleted']),
  )
})

test('a terminator ends with the session that it was last created with, and so do its circuits', async () => {
  await using started = await startTerminators()
  await createV2(started.r1)
  await createV2(started.r1, { address: 't2', sessionToken: 'of-bob' })
  await started.db.query(sql`
    insert into session (id, token, type, api_session_id, service_id, identity_id)
    values ('newer', 'newer', 'Bind', 'as-newer', 'wiki', 'alice')`)
  await started.db.query(sql`update terminator set session_id = 'newer' where id = 't1'`)
  await started.concern.endOfSessions(['of-alice', 'of-bob'])
  expect(await started.rows()).toMatchObject([{ id: 't1' }])
  expect(started.ended).toEqual(['t2'])
})

test('circuits end with their session also if the router removes the terminator first', async () => {
  await using started = await startTerminators()
  await createV2(started.r1)
  await createV2(started.r1, { address: 't2', sessionToken: 'of-bob' })
  await started.db.query(sql`delete from session where id = 'of-alice'`)
  const terminatorIds = ['t1', 't2']
  await started.r1.ask(ctrlType.removeTerminators, RemoveFabricTerminatorsRequest, { terminatorIds })
  expect(started.ended).toEqual(['t1']) // a host that stops accepts no more, and keeps what it has accepted
})

test('changes are published with the numbers of their service', async () => {
  await using started = await startTerminators()
  await createV2(started.r1, { cost: 4 })
  await createV2(started.r2, { address: 't2' })
  await createV2(started.r1, { cost: 5, precedence: TerminatorPrecedence.REQUIRED })
  await started.r1.ask(ctrlType.removeTerminators, RemoveFabricTerminatorsRequest, { terminatorIds: ['t1'] })
  while (started.events.length < 4) await new Promise(setImmediate)
  expect(started.events.map(({ event_type, terminator_id }) => [event_type, terminator_id])).toEqual([
    ['created', 't1'],
    ['created', 't2'],
    ['updated', 't1'],
    ['deleted', 't1'],
  ])
  expect(started.events[2]).toMatchObject({
    namespace: 'fabric.terminators',
    service_id: 'wiki',
    router_id: 'r1',
    host_id: 'alice',
    router_online: true,
    precedence: 'required',
    static_cost: 5,
    dynamic_cost: 0,
  })
})
