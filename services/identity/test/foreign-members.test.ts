import type { Change } from '@overlay/rpc'
import { withLoadedRows } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pkiEffects } from '../src/consumers/pki.js'
import {
  bytes,
  lockWaits,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'

let identity: TestIdentity
let one: Replica
let two: Replica
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  two = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const kind = 'identities'
const ott = { ott: { id: 'e', token: 't', jwt: 'j', expiresAt: '' } }
const upto = { timeline: '', number: 0 }

async function create(name: string, enrollment?: object): Promise<string> {
  const body = { name, type: 'Default', isAdmin: false, ...(enrollment && { enrollment }) }
  return (await one.entities.create({ kind, json: bytes(body) }, system())).id
}
const get = async (id: string, { entities } = two): Promise<Record<string, unknown>> =>
  parsed((await entities.get({ ref: { kind, id }, perspective: undefined }, system())).json)

const list = () =>
  two.entities.list({ kind, query: undefined, within: undefined, perspective: undefined }, system())

/** The identities about which pki is asked meanwhile. */
async function viewedDuring(work: () => Promise<unknown>): Promise<readonly string[]> {
  const { viewed } = identity.world
  viewed.length = 0
  await work()
  return [...viewed]
}

const changeOf = (id: string, json: object | null): Change => ({
  kind: 'enrollments',
  id,
  json: json ? bytes(json) : Buffer.alloc(0),
  atMs: 0,
  number: 0,
})
const effects = pkiEffects
const follow = (...changes: readonly Change[]) =>
  one.changeLog.write(system(), async (tx) => ({
    result: undefined,
    changes: await effects.apply(tx, changes, upto),
  }))
const reload = (...rows: readonly Change[]) =>
  one.changeLog.write(system(), async (tx) => ({
    result: undefined,
    changes: await withLoadedRows(tx, [rows], (loaded) => effects.reload(tx, loaded, upto)),
  }))
const lastWish = () => identity.world.wishes.at(-1)?.id ?? ''

test('a read asks pki about identities that may have an enrollment, and about no others', async () => {
  const [plain, none] = [await create('plain'), await create('none', { ott: false })]
  const enrolling = await create('enrolling', { ottca: 'ca' })
  identity.world.enrollments.set(enrolling, { enrollment: ott })
  expect(await viewedDuring(() => get(plain))).toEqual([])
  expect(await viewedDuring(() => get(none))).toEqual([])
  expect((await get(enrolling)).enrollment).toEqual(ott)
  expect(await viewedDuring(list)).toEqual([enrolling])
})

test('pki is asked until it reports the end of the enrollment', async () => {
  const id = await create('redeemed', { ottca: 'ca' })
  expect(await viewedDuring(() => get(id))).toEqual([id])
  await follow(changeOf(lastWish(), null))
  expect(await viewedDuring(() => get(id))).toEqual([])
})

test('an enrollment that an existing identity is about to get is asked for through every replica', async () => {
  const id = await create('later')
  await one.identity.expectEnrollment({ enrollmentId: 'announced', identityId: id }, system())
  expect(await viewedDuring(() => get(id, two))).toEqual([id])
  await follow(changeOf('announced', null))
  expect(await viewedDuring(() => get(id, two))).toEqual([])
})

test('an enrollment of an identity that is gone is not expected', async () => {
  await one.identity.expectEnrollment(
    { enrollmentId: 'of-a-missing-identity', identityId: 'missing' },
    system(),
  )
  const { rows } = await one.db.query(
    sql`select id from outstanding_enrollment where id = 'of-a-missing-identity'`,
  )
  expect(rows).toEqual([])
})

test('an enrollment of an identity that is being deleted waits for the end of that, and is not expected', async () => {
  const id = await create('leaving')
  let expected: Promise<unknown> | undefined
  await one.db.transaction(undefined, async (tx) => {
    await tx.query(sql`delete from identity where id = ${id}`)
    expected = one.identity.expectEnrollment({ enrollmentId: 'of-the-leaving', identityId: id }, system())
    const waiting = sql`select from pg_stat_activity where wait_event = 'transactionid'
                         and query like '%outstanding_enrollment%'`
    await expect.poll(async () => (await one.db.query(waiting)).rowCount).toBe(1)
  })
  await expected
  const { rows } = await one.db.query(sql`select id from outstanding_enrollment where identity_id = ${id}`)
  expect(rows).toEqual([])
})

test('an enrollment that was not announced is asked for when its change arrives', async () => {
  const id = await create('unannounced')
  await follow(changeOf('found', { identityId: id }), changeOf('of-a-router', { edgeRouterId: 'r' }))
  expect(await viewedDuring(() => get(id))).toEqual([id])
})

test('a load adds what is missing, and removes what pki does not have unless it may still create it', async () => {
  const [missing, ended, recent] = [await create('missing'), await create('ended'), await create('recent')]
  await one.identity.expectEnrollment({ enrollmentId: 'ended', identityId: ended }, system())
  await one.identity.expectEnrollment({ enrollmentId: 'recent', identityId: recent }, system())
  await one.db.query(sql`
    update outstanding_enrollment set created_at = now() - interval '1 hour' where id = 'ended'`)
  await reload(changeOf('missing', { identityId: missing }))
  const asked = await viewedDuring(async () => {
    for (const id of [missing, ended, recent]) await get(id)
  })
  expect(asked).toEqual([missing, recent])
})

test('before the first load pki is asked about every identity', async () => {
  const id = await create('early')
  await one.db.query(sql`update followed set timeline = null where schema = 'pki'`)
  expect(await viewedDuring(() => get(id))).toEqual([id])
  await one.db.query(sql`update followed set timeline = gen_random_uuid() where schema = 'pki'`)
})

test('a reported connection shows through every replica until it lapses', async () => {
  const id = await create('connected')
  expect((await get(id)).hasEdgeRouterConnection).toBe(false)
  await one.identity.reportConnections({ identityIds: [id] }, system())
  expect((await get(id)).hasEdgeRouterConnection).toBe(true)
  await one.db.query(
    sql`update identity_connection set seen_at = now() - interval '76 seconds' where identity_id = ${id}`,
  )
  expect((await get(id)).hasEdgeRouterConnection).toBe(false)
})

test('a connection is deleted with its identity, and a late report adds none', async () => {
  const id = await create('disconnected')
  const rows = async () => {
    const { rows } = await one.db.query(sql`select from identity_connection where identity_id = ${id}`)
    return rows.length
  }
  await one.identity.reportConnections({ identityIds: [id] }, system())
  expect(await rows()).toBe(1)
  await one.entities.delete({ kind: 'identities', id }, system())
  expect(await rows()).toBe(0)
  await one.identity.reportConnections({ identityIds: [id] }, system())
  expect(await rows()).toBe(0)
})

test('reports of the same identities lock their rows in one order', async () => {
  const [first = '', second = ''] = [await create('reported 1'), await create('reported 2')].sort()
  for (const id of [second, first]) await one.identity.reportConnections({ identityIds: [id] }, system())
  let report: Promise<unknown> | undefined
  const locked = (id: string) =>
    sql`select from identity_connection where identity_id = ${id} for update nowait`
  await one.db.transaction(undefined, async (tx) => {
    await tx.query(locked(first))
    report = one.identity.reportConnections({ identityIds: [second, first] }, system())
    await expect.poll(() => lockWaits(one.db, 'identity_connection'), { timeout: 30_000 }).toBe(1)
    await tx.query(locked(second)) // the report waits for the first one and has not locked this one
  })
  await report
})
