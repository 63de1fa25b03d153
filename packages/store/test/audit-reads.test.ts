import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import { type AuditedChange, type ListChangesResponse, ownContext } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { auditService } from '../src/audit/audit-service.js'
import type { ChangeEvent } from '../src/audit/event.js'
import { type Database, openDatabase } from '../src/postgres/database.js'

let database: TestDatabase
let owner: Database
let db: Database
beforeAll(async () => {
  database = await testDatabase('policy')
  owner = openDatabase(database.ownerUrl, 'policy')
  db = openDatabase(database.urlOf('policy'), 'policy')
})
afterAll(async () => {
  await db[Symbol.asyncDispose]()
  await owner[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await owner.query(sql`truncate audit restart identity`)
})

interface Row {
  readonly id: string
  readonly at?: string
  readonly kind?: string
  readonly before?: object
  readonly after?: object
  readonly request?: string
  readonly by?: readonly [id: string, name: string | null, address: string | null]
}

async function add(...rows: readonly Row[]): Promise<void> {
  for (const { id, at, kind = 'services', before, after, request = '', by = ['', '', ''] } of rows)
    await db.query(sql`
      insert into audit (at, kind, entity_id, before, after, request_id, identity_id, identity_name, source_address)
      values (coalesce(${at}::timestamptz, clock_timestamp()), ${kind}, ${id}, ${before ?? null}::jsonb,
              ${after ?? null}::jsonb, ${request}, ${by[0]}, ${by[1]}, ${by[2]})`)
}

const context = ownContext(new AbortController().signal)
const all = { filter: '', behind: undefined, oldestFirst: false, limit: 100 }
const list = (
  request: Partial<Omit<typeof all, 'behind'>> & { behind?: { atMs: number; id: number } | undefined },
) => auditService(db).list({ ...all, ...request }, context)
const eventOf = ({ json }: AuditedChange): ChangeEvent => JSON.parse(json.toString())
const idsOf = ({ changes }: ListChangesResponse): string[] =>
  changes.map((change) => eventOf(change).entityId)

test('a change is an event in the form of the original, with author, request, entity and states', async () => {
  await add({
    id: 's1',
    at: '2026-01-02T03:04:05.678Z',
    kind: 'service-policies',
    before: { name: 'old', semantic: 'AllOf' },
    after: { name: 'new', semantic: 'AnyOf' },
    request: 'r1',
    by: ['i1', 'root', '192.0.2.7'],
  })
  const [change] = (await list({})).changes
  expect(change && eventOf(change)).toEqual({
    namespace: 'entityChange',
    eventId: 'policy.1',
    eventType: 'updated',
    timestamp: '2026-01-02T03:04:05.678Z',
    metadata: {
      author: { type: 'identity', id: 'i1', name: 'root' },
      source: { type: 'rest', remoteAddr: '192.0.2.7' },
      requestId: 'r1',
    },
    entityType: 'servicePolicies',
    kind: 'service-policies',
    entityId: 's1',
    entityName: 'new',
    cursor: `${Date.parse('2026-01-02T03:04:05.678Z')}.policy.1`,
    initialState: { name: 'old', semantic: 'AllOf' },
    finalState: { name: 'new', semantic: 'AnyOf' },
  })
  expect(await auditService(db).get({ id: 1 }, context)).toEqual(change)
})

test.each<[string, NonNullable<Row['by']>, object]>([
  ['the system', ['', '', ''], { author: { type: 'controller' } }],
  ['a client without a session', ['', '', '192.0.2.7'], { author: { type: 'unattributed' } }],
  ['unknown in rows of earlier versions', ['', null, null], { author: { type: 'unattributed' } }],
  ['a user of the machine', ['', 'root', ''], { author: { type: 'operator', name: 'root' } }],
  ['an identity that hosts', ['i1', '', ''], { author: { type: 'identity', id: 'i1' } }],
  ['a router', ['r1', '', ''], { author: { type: 'router', id: 'r1' } }],
])('the author is %s', async (_, by, expected) => {
  await add({ id: 't1', kind: 'terminators', after: { routerId: 'r1' }, by })
  const [change] = (await list({})).changes
  expect(change && eventOf(change).metadata).toMatchObject(expected)
})

test.each([
  ['edge-routers', 'routers'],
  ['second-factors', 'mfas'],
  ['external-jwt-signers', 'externalJwtSigners'],
  ['cas', 'cas'],
])('changes of %s have the entity type %s', async (kind, entityType) => {
  await add({ id: 'e1', kind })
  expect((await list({})).changes).toMatchObject([{ entityType }])
})

test.each([
  ['kind = "services"', ['s1']],
  ['entityId = "i1"', ['i1', 'i1']],
  ['entityName = "alicia"', ['i1', 'i1']],
  ['previousName = "alice"', ['i1']],
  ['authorId = "a1"', ['s1', 'i1']],
  ['authorName = "root"', ['i1']],
  ['requestId in ["r1", "r2"]', ['i1']],
  ['sourceAddress contains "192.0.2"', ['i1']],
  ['eventType = "deleted"', ['i1']],
  ['eventType = "created" and authorId = "a1"', ['s1']],
  ['timestamp >= datetime(2026-01-02T00:00:00Z)', ['s1', 'i1']],
  ['timestamp < datetime(2026-01-02T00:00:00Z)', ['i1']],
  ['', ['s1', 'i1', 'i1']],
])('the filter %s selects %j', async (filter, expected) => {
  await add(
    {
      id: 'i1',
      at: '2026-01-01',
      kind: 'identities',
      before: { name: 'alice' },
      after: { name: 'alicia' },
      request: 'r1',
      by: ['a1', 'root', '192.0.2.7'],
    },
    { id: 'i1', at: '2026-01-02', kind: 'identities', before: { name: 'alicia' } },
    { id: 's1', at: '2026-01-03', after: { name: 'wiki' }, by: ['a1', null, null] },
  )
  expect(idsOf(await list({ filter }))).toEqual(expected)
})

test.each([
  ['nonsense = 1', "unknown symbol 'nonsense'"],
  ['kind = ', 'Unexpected symbol'],
  ['true sort by kind', 'sort, skip and limit are not supported here'],
  ['true limit 3', 'sort, skip and limit are not supported here'],
])('the filter %s is refused', async (filter, detail) => {
  await expect((async () => list({ filter }))()).rejects.toMatchObject({
    code: 'INVALID_FILTER',
    detail: expect.stringContaining(detail),
  })
})

test.each([
  ['', false],
  ['', true],
  ['authorId = "a1"', false],
  ['authorId = "a1" and kind = "services"', true],
  ['entityId = "s1"', false],
  ['timestamp > datetime(2026-01-01T00:00:00Z) and entityId = "s1"', true],
])(
  'pages of the filter %j, oldest first: %s, have each change once while others are added',
  async (filter, oldestFirst) => {
    const changes = ['1', '2', '3', '4', '5']
    for (const name of changes) await add({ id: 's1', after: { name }, by: ['a1', '', ''] })
    await expect.poll(async () => (await list({ oldestFirst: true })).changes).toHaveLength(5)
    const found: unknown[] = []
    let behind: AuditedChange | undefined
    do {
      const page = await list({ filter, behind, oldestFirst, limit: 2 })
      found.push(...page.changes.map((change) => eventOf(change).entityName))
      behind = page.isComplete ? undefined : page.changes.at(-1)
      await add({ id: oldestFirst ? 'other' : 's1', after: { name: 'later' } })
    } while (behind)
    const expected = oldestFirst ? changes : [...changes].reverse()
    expect(found.filter((name) => name !== 'later')).toEqual(expected)
  },
)

test('changes of one time are in the order of their ids', async () => {
  const at = '2026-01-01'
  await add({ id: 's1', at }, { id: 's2', at }, { id: 's3', at })
  const [first] = (await list({ limit: 1, oldestFirst: true })).changes
  expect(idsOf(await list({ behind: first, oldestFirst: true }))).toEqual(['s2', 's3'])
  const [last] = (await list({ limit: 1 })).changes
  expect(idsOf(await list({ behind: last }))).toEqual(['s2', 's1'])
})

test('oldest first, no change is behind one that commits later', async () => {
  const insert = sql`insert into audit (request_id, identity_id, kind, entity_id) values ('', '', 'services', 'slow')`
  const behind = await db.transaction(undefined, async (tx) => {
    await tx.query(insert)
    await add({ id: 'quick' })
    const page = await list({ oldestFirst: true })
    expect(idsOf(page)).toEqual([])
    expect(idsOf(await list({}))).toEqual(['quick'])
    return { atMs: page.settledMs, id: 0 }
  })
  expect(behind.atMs).toBeGreaterThan(0)
  await expect.poll(async () => idsOf(await list({ behind, oldestFirst: true }))).toEqual(['slow', 'quick'])
})

test('while a writer of another role is under way, nothing new is settled', async () => {
  await add({ id: 's1' })
  await owner.transaction(undefined, async (tx) => {
    await tx.query(
      sql`insert into audit (request_id, identity_id, kind, entity_id) values ('', '', 'services', 's2')`,
    )
    expect(await list({ oldestFirst: true })).toMatchObject({ changes: [], settledMs: 0 })
  })
  await expect.poll(async () => idsOf(await list({ oldestFirst: true }))).toEqual(['s1', 's2'])
})

test('a page of large changes ends before it fills a message', async () => {
  const after = { text: 'x'.repeat(1_500_000) }
  await add({ id: 's1', after }, { id: 's2', after }, { id: 's3', after }, { id: 's4', after })
  const first = await list({})
  expect([idsOf(first), first.isComplete]).toEqual([['s4', 's3', 's2'], false])
  const second = await list({ behind: first.changes.at(-1) })
  expect([idsOf(second), second.isComplete]).toEqual([['s1'], true])
})

test('a change that does not exist is not found', async () => {
  await expect(auditService(db).get({ id: 7 }, context)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('reads of the audit that wait beyond their limit are refused', async () => {
  const service = auditService(db)
  const reads = await owner.transaction(undefined, async (tx) => {
    await tx.query(sql`lock audit`)
    const reads = Array.from({ length: 30 }, () =>
      service.list(all, context).then(
        () => 'answered',
        ({ code }) => code,
      ),
    )
    expect(await Promise.race(reads)).toBe('SERVER_TOO_MANY_REQUESTS')
    return reads
  })
  const outcomes = await Promise.all(reads)
  expect(outcomes.filter((outcome) => outcome !== 'answered')).toHaveLength(8)
})
