import { noQuery } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { codeAt } from '../src/domain/second-factor.js'
import {
  as,
  bytes,
  login,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'

let identity: TestIdentity
let one: Replica
beforeAll(async () => {
  identity = await testIdentity()
})
afterAll(() => identity[Symbol.asyncDispose]())

const get = async (kind: string, id: string) =>
  parsed((await one.entities.get({ ref: { kind, id }, perspective: undefined }, system())).json)

const list = async () => {
  const { rows } = await one.entities.list(
    {
      kind: 'identities',
      query: { ...noQuery, sort: 'name', limit: '200' },
      within: undefined,
      perspective: undefined,
    },
    as({ isAdmin: true }),
  )
  return parsed<{ id: string; name: string }[]>(rows)
}
const listed = async (id: string) => (await list()).find((row) => row.id === id)

const update = (kind: string, id: string, values: object, replica = one) =>
  replica.entities.update({ ref: { kind, id }, json: bytes(values), mask: Object.keys(values) }, system())

let authPolicyId: string
let id: string
let authenticatorId: string
const username = () => `user-${id}`
beforeEach(async () => {
  one = await identity.replica()
  const create = async (kind: string, values: object) =>
    (await one.entities.create({ kind, json: bytes(values) }, system())).id
  const name = `person ${performance.now()}`
  const { rows } = await one.db.query<{ id: string }>(sql`select id from auth_policy limit 1`)
  authPolicyId = rows[0]?.id ?? ''
  id = await create('identities', { name, type: 'Default', isAdmin: false })
  const proof = { method: 'updb', identityId: id, username: username(), password: 'right-one' }
  authenticatorId = await create('authenticators', proof)
})

const enter = () =>
  one.identity.authenticate(login({ username: username(), password: 'right-one' }), system())

test.each<[what: string, change: () => Promise<unknown>]>([
  ['name', () => update('identities', id, { name: `renamed ${id}` })],
  ['tags', () => update('identities', id, { tags: { where: 'here' } })],
  ['role attributes', () => update('identities', id, { roleAttributes: ['word'] })],
  ['name of its auth policy', () => update('auth-policies', authPolicyId, { name: `policy ${id}` })],
  ['being disabled', () => one.identity.disableIdentity({ id, durationMinutes: 5 }, system())],
  ['session', enter],
  ['connection', () => one.identity.reportConnections({ identityIds: [id] }, system())],
  ['new user name', () => update('authenticators', authenticatorId, { username: `other ${id}` })],
  [
    'lost authenticator',
    () => one.entities.delete({ kind: 'authenticators', id: authenticatorId }, system()),
  ],
  [
    'enrollment',
    async () => {
      identity.world.enrollments.set(id, { enrollment: { ott: { id: 'wish' } } })
      await one.identity.expectEnrollment({ enrollmentId: `wish-${id}`, identityId: id }, system())
    },
  ],
])('a listed row shows the %s at once', async (_, change) => {
  const before = await listed(id)
  await change()
  const after = await listed(id)
  expect(after).not.toEqual(before)
  expect(after).toEqual(await get('identities', id))
})

test('a listed row shows flags that other tables decide', async () => {
  const { id: apiSessionId } = await enter()
  await one.identity.startMfa({}, as({ identityId: id, apiSessionId }))
  await one.identity.reportConnections({ identityIds: [id] }, system())
  const { provisioningUrl } = await one.identity.getMfa({}, as({ identityId: id, apiSessionId }))
  const secret = new URL(provisioningUrl).searchParams.get('secret') ?? ''
  const code = codeAt(secret, Math.floor(Date.now() / 30_000) - 1)
  await one.identity.verifyMfa({ code }, as({ identityId: id, apiSessionId }))
  await one.db.query(sql`update identity_connection set seen_at = now() - interval '76 seconds'`)
  await one.db.query(sql`delete from api_session where identity_id = ${id}`)
  expect(await listed(id)).toMatchObject({
    isMfaEnabled: true,
    hasApiSession: false,
    hasEdgeRouterConnection: false,
  })
})

test('a change through another replica shows in lists at once', async () => {
  const two = await identity.replica()
  await update('identities', id, { name: `elsewhere ${id}` }, two)
  expect(await listed(id)).toMatchObject({ name: `elsewhere ${id}` })
})
