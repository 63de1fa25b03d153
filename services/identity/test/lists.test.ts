import type { ListQuery } from '@overlay/rpc'
import { noQuery } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
let replica: Replica
beforeAll(async () => {
  identity = await testIdentity()
  replica = await identity.replica()
  for (const name of ['a', 'b', 'c', 'd'])
    await replica.entities.create(
      { kind: 'identities', json: bytes({ name, type: 'Default', isAdmin: false }) },
      system(),
    )
})
afterAll(() => identity[Symbol.asyncDispose]())

const list = (query: Partial<ListQuery>, kind = 'identities', context = as({ isAdmin: true })) =>
  replica.entities.list(
    { kind, query: { ...noQuery, ...query }, within: undefined, perspective: undefined },
    context,
  )
async function page(query: Partial<ListQuery>) {
  const { rows, total } = await list(query)
  return { names: (parsed(rows) as unknown as { name: string }[]).map(({ name }) => name), total }
}
const all = ['Default Admin', 'a', 'b', 'c', 'd']

test.each([4, 5, 6])('a page of up to %i of five rows counts all', async (limit) => {
  const sort = 'name'
  expect(await page({ sort, limit: String(limit) })).toEqual({ names: all.slice(0, limit), total: 5 })
  expect(await page({ sort, limit: String(limit), filter: 'true' })).toMatchObject({ total: 5 })
})

test.each([
  ['1', ['a', 'b'], 5],
  ['3', ['c', 'd'], 5],
  ['4', ['d'], 5],
  ['5', [], 5],
  ['9', [], 5],
])('from offset %s on', async (offset, names, total) => {
  expect(await page({ sort: 'name', limit: '2', offset })).toEqual({ names, total })
})

test.each([
  ['1', ['b'], 3],
  ['3', ['b', 'c', 'd'], 3],
  ['9', ['b', 'c', 'd'], 3],
])('a filtered page of %s counts the matches', async (limit, names, total) => {
  const filter = 'name in ["b", "c", "d", "x"]'
  expect(await page({ sort: 'name', limit, filter })).toEqual({ names, total })
  expect(await page({ sort: 'name', limit, filter: 'name = "x"' })).toEqual({ names: [], total: 0 })
})

test('a caller that does not see all rows does not learn how many there are', async () => {
  const { rows, total } = await list({ limit: '1' }, 'identities', as({ identityId: 'nobody' }))
  expect([parsed(rows), total]).toEqual([[], 0])
})

test('what is joined belongs to its row', async () => {
  const { username, password } = identity.admin
  await replica.identity.authenticate(login({ username, password }), system())
  const { rows } = await list({ sort: 'name', limit: '2' })
  const method = { updb: { id: expect.any(String), username } }
  expect(parsed(rows)).toMatchObject([
    { hasApiSession: true, authPolicy: { name: 'Default' }, authenticators: method },
    { hasApiSession: false, authPolicy: { name: 'Default' }, authenticators: {} },
  ])
})

test('all rows come page after page, each once, and only the first page contains the count', async () => {
  await replica.db.query(sql`
    insert into identity (id, name, type, is_admin, auth_policy_id)
    select 'many-' || i, 'many ' || i, 'Default', false, 'default' from generate_series(1, 1100) as i`)
  const names: string[] = []
  const totals: number[] = []
  let after: Uint8Array | undefined
  do {
    const { rows, total, next }: Awaited<ReturnType<typeof list>> = await list({
      sort: 'name desc',
      limit: '-1',
      ...(after && { after: Buffer.from(after) }),
    })
    names.push(...(parsed(rows) as unknown as { name: string }[]).map(({ name }) => name))
    totals.push(total)
    after = next
  } while (after.length > 0)
  expect(totals).toEqual([1105, 0, 0])
  expect(new Set(names).size).toBe(1105)
  expect(names).toEqual([...names].sort().reverse())
})
