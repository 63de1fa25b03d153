import { type TestDatabase, testDatabase, withClient } from '@overlay/launcher/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AuditQuery, type AuditRow, readAudit } from '../src/commands/audit-rows.js'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase('identity', 'pki', 'policy', 'sessions')
  await add('identity', { at: '2026-01-01', entity: 'i1', after: { name: 'alice' }, request: 'r1' })
  await add('policy', { at: '2026-01-02', entity: 's1', kind: 'services', after: { name: 'wiki' } })
  await add('identity', {
    at: '2026-01-03',
    entity: 'i1',
    before: { name: 'alice' },
    by: { id: 'a1', name: 'root', address: '192.0.2.7' },
  })
  await add('sessions', { at: '2026-01-04', entity: 't1', kind: 'terminators', by: { id: 'a1' } })
})
afterAll(() => database[Symbol.asyncDispose]())

interface Sample {
  readonly at: string
  readonly entity: string
  readonly kind?: string
  readonly before?: object
  readonly after?: object
  readonly request?: string
  readonly by?: { readonly id: string; readonly name?: string; readonly address?: string }
}

const add = (schema: string, { at, entity, kind, before, after, request, by }: Sample): Promise<unknown> =>
  withClient(database.ownerUrl, (client) =>
    client.query(
      `insert into ${schema}.audit (at, kind, entity_id, before, after, request_id, identity_id, identity_name, source_address)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [at, kind ?? 'identities', entity, before, after, request ?? '', by?.id ?? '', by?.name, by?.address],
    ),
  )

const find = (query: Partial<AuditQuery>): Promise<AuditRow[]> =>
  readAudit(database.ownerUrl, { limit: 100, ...query })
const found = async (query: Partial<AuditQuery>): Promise<string[]> =>
  (await find(query)).map(({ at, entity_id }) => `${at.slice(5, 10)} ${entity_id}`)

test('changes of all services are in the order of their time', async () => {
  expect(await found({})).toEqual(['01-01 i1', '01-02 s1', '01-03 i1', '01-04 t1'])
})

test('the limit leaves the newest changes', async () => {
  expect(await found({ limit: 2 })).toEqual(['01-03 i1', '01-04 t1'])
})

test.each<[Partial<AuditQuery>, string[]]>([
  [{ kind: 'services' }, ['01-02 s1']],
  [{ id: 't1' }, ['01-04 t1']],
  [{ name: 'alice' }, ['01-01 i1', '01-03 i1']],
  [{ request: 'r1' }, ['01-01 i1']],
  [{ author: 'root' }, ['01-03 i1']],
  [{ author: 'a1' }, ['01-03 i1', '01-04 t1']],
  [{ since: new Date('2026-01-03') }, ['01-03 i1', '01-04 t1']],
  [{ name: 'alice', author: 'a1' }, ['01-03 i1']],
])('%j selects %j', async (query, expected) => {
  expect(await found(query)).toEqual(expected)
})

test('a row has its author as it was at the time, and the entity before and after', async () => {
  expect(await find({ author: 'root' })).toEqual([
    {
      schema: 'identity',
      at: '2026-01-03T00:00:00.000Z',
      kind: 'identities',
      entity_id: 'i1',
      before: { name: 'alice' },
      after: null,
      request_id: '',
      identity_id: 'a1',
      identity_name: 'root',
      source_address: '192.0.2.7',
      author_kind: null,
    },
  ])
})

test('an author that the row does not name has the name that it has now', async () => {
  await withClient(database.ownerUrl, (client) =>
    client.query(`insert into sessions.router (id, name, is_edge) values ('r1', 'edge-1', true)`),
  )
  await add('sessions', { at: '2026-01-05', entity: 't2', kind: 'terminators', by: { id: 'r1', name: '' } })
  expect(await find({ author: 'edge-1' })).toMatchObject([{ identity_name: 'edge-1', author_kind: 'router' }])
})

test('an author is found by user name', async () => {
  await withClient(database.ownerUrl, (client) =>
    client.query(`
      insert into identity.identity (id, name, type, is_admin, auth_policy_id)
      values ('a2', 'Operator', 'Default', true, 'default');
      insert into identity.authenticator (id, method, identity_id, username) values ('u2', 'updb', 'a2', 'op')`),
  )
  await add('policy', {
    at: '2026-01-06',
    entity: 's2',
    kind: 'services',
    by: { id: 'a2', name: 'Operator' },
  })
  expect(await found({ author: 'op' })).toEqual(['01-06 s2'])
})
