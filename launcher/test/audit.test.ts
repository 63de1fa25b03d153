import { type TestDatabase, testDatabase, withClient } from '@overlay/launcher/testing'
import type { ChangeEvent } from '@overlay/store/audit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AuditQuery, readAudit } from '../src/commands/read-audit.js'

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

const find = (query: Partial<AuditQuery>): Promise<ChangeEvent[]> =>
  readAudit(database.ownerUrl, { limit: 100, ...query })
const found = async (query: Partial<AuditQuery>): Promise<string[]> =>
  (await find(query)).map(({ timestamp, entityId }) => `${timestamp.slice(5, 10)} ${entityId}`)

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

test('a change is the event of the audit API', async () => {
  expect(await find({ author: 'root' })).toEqual([
    {
      namespace: 'entityChange',
      eventId: expect.stringMatching(/^identity\.\d+$/),
      eventType: 'deleted',
      timestamp: '2026-01-03T00:00:00.000Z',
      metadata: {
        author: { type: 'identity', id: 'a1', name: 'root' },
        source: { type: 'rest', remoteAddr: '192.0.2.7' },
      },
      entityType: 'identities',
      kind: 'identities',
      entityId: 'i1',
      entityName: 'alice',
      cursor: expect.stringMatching(/^1767398400000\.identity\.\d+$/),
      initialState: { name: 'alice' },
    },
  ])
})

test('more than fits a page is read in several', async () => {
  const large = 'x'.repeat(3 * 1024 * 1024)
  for (const entity of ['l1', 'l2', 'l3'])
    await add('pki', { at: '2025-01-01', entity, kind: 'large', after: { name: entity, large } })
  expect(await found({ kind: 'large' })).toEqual(['01-01 l1', '01-01 l2', '01-01 l3'])
  expect(await found({ kind: 'large', limit: 2 })).toEqual(['01-01 l2', '01-01 l3'])
})

test('an author that the row does not name has the name that it has now', async () => {
  await withClient(database.ownerUrl, (client) =>
    client.query(`insert into sessions.router (id, name, is_edge) values ('r1', 'edge-1', true)`),
  )
  await add('sessions', { at: '2026-01-05', entity: 't2', kind: 'terminators', by: { id: 'r1', name: '' } })
  expect(await find({ author: 'edge-1' })).toMatchObject([
    { metadata: { author: { id: 'r1', name: 'edge-1' } } },
  ])
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
