import { noQuery } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bytes, parsed, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let identity: TestIdentity
let one: Replica
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const kind = 'auth-policies'
const tree = {
  primary: {
    cert: { allowed: true, allowExpiredCerts: false },
    extJwt: { allowed: true, allowedSigners: [] as string[] },
    updb: {
      allowed: true,
      lockoutDurationMinutes: 10,
      maxAttempts: 3,
      minPasswordLength: 8,
      requireMixedCase: true,
      requireNumberChar: false,
      requireSpecialChar: false,
    },
  },
  secondary: { requireTotp: false },
}
const create = (body: object) => one.entities.create({ kind, json: bytes(body) }, system())
const get = async (id: string) =>
  parsed((await one.entities.get({ ref: { kind, id }, perspective: undefined }, system())).json)
const patch = (id: string, body: object, ...mask: string[]) =>
  one.entities.update({ ref: { kind, id }, json: bytes(body), mask }, system())

test('the tree comes back as it was sent', async () => {
  const { id } = await create({ name: 'whole', ...tree })
  expect(await get(id)).toEqual({
    _links: { self: { href: `./auth-policies/${id}` } },
    id,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    tags: {},
    name: 'whole',
    ...tree,
  })
})

test('a patch changes the leaf that it names and no other', async () => {
  const { id } = await create({ name: 'patched', ...tree })
  await patch(id, { primary: { updb: { minPasswordLength: 12 } } }, 'primary.updb.minPasswordLength')
  await patch(id, { primary: { updb: { requireNumberChar: true } } }, 'primary.updb.requireNumberChar')
  const updb = { ...tree.primary.updb, minPasswordLength: 12, requireNumberChar: true }
  expect(await get(id)).toMatchObject({ ...tree, primary: { ...tree.primary, updb } })
})

test.each([
  ['allowed', { primary: { extJwt: { allowedSigners: ['nobody'] } } }, 'primary.extJwt.allowedSigners'],
  ['second', { secondary: { requireExtJwtSigner: 'nobody' } }, 'secondary.requireExtJwtSigner'],
])('an unknown %s signer is a 404, on patch too', async (_which, body, member) => {
  const { id } = await create({ name: `signed ${member}`, ...tree })
  await expect(patch(id, body, member)).rejects.toMatchObject({
    code: 'NOT_FOUND',
    detail: { value: 'nobody' },
  })
})

test('a policy that identities have, and the default one, cannot be deleted', async () => {
  const { id } = await create({ name: 'in use', ...tree })
  const person = { name: 'user', type: 'Default', isAdmin: false, authPolicyId: id }
  const { id: user } = await one.entities.create({ kind: 'identities', json: bytes(person) }, system())
  const referenced = { code: 'CAN_NOT_DELETE_REFERENCED_ENTITY', detail: { field: 'authPolicyId' } }
  await expect(one.entities.delete({ kind, id }, system())).rejects.toMatchObject(referenced)
  await expect(one.entities.delete({ kind, id: 'default' }, system())).rejects.toMatchObject(referenced)
  await one.entities.delete({ kind: 'identities', id: user }, system())
  await one.entities.delete({ kind, id }, system())
})

test('the default admin keeps an authenticator that its policy allows', async () => {
  const { rows } = await one.db.query<{ id: string; authenticatorId: string }>(sql`
    select i.id, a.id as "authenticatorId"
      from identity i join authenticator a on a.identity_id = i.id where i.is_default_admin`)
  const { id = '', authenticatorId = '' } = rows[0] ?? {}
  const refused = { code: 'ENTITY_CAN_NOT_BE_UPDATED' }
  const forbidding = { primary: { updb: { allowed: false } } }
  await expect(patch('default', forbidding, 'primary.updb.allowed')).rejects.toMatchObject(refused)

  const updb = { ...tree.primary.updb, allowed: false }
  const without = await create({ name: 'no passwords', ...tree, primary: { ...tree.primary, updb } })
  const move = (authPolicyId: string) =>
    one.entities.update(
      { ref: { kind: 'identities', id }, json: bytes({ authPolicyId }), mask: ['authPolicyId'] },
      system(),
    )
  await expect(move(without.id)).rejects.toMatchObject(refused)
  const allowing = await create({ name: 'passwords', ...tree })
  await move(allowing.id)
  await patch('default', forbidding, 'primary.updb.allowed') // no longer its policy
  await expect(patch(allowing.id, forbidding, 'primary.updb.allowed')).rejects.toMatchObject(refused)
  await expect(
    one.identity.reEnrollAuthenticator(
      { id: authenticatorId, expiresAtMs: Date.now() + 3_600_000 },
      system(),
    ),
  ).rejects.toMatchObject({ code: 'ENTITY_CAN_NOT_BE_DELETED' })
})

test('filters name the leaves', async () => {
  await create({ name: 'filtered', ...tree, secondary: { requireTotp: true } })
  const query = { ...noQuery, filter: 'secondary.requireTotp = true and primary.updb.maxAttempts = 3' }
  const page = await one.entities.list({ kind, query, within: undefined, perspective: undefined }, system())
  expect(parsed<{ name: string }[]>(page.rows).map(({ name }) => name)).toEqual(['filtered'])
})

test('there are two identity types, with their words as ids', async () => {
  const page = await one.entities.list(
    { kind: 'identity-types', query: undefined, within: undefined, perspective: undefined },
    system(),
  )
  expect(parsed<{ id: string; name: string }[]>(page.rows)).toMatchObject([
    { id: 'Default', name: 'Default' },
    { id: 'Router', name: 'Router' },
  ])
})
