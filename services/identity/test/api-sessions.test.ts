import { noQuery } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { reapSessions } from '../src/jobs/housekeeping.js'
import {
  as,
  bytes,
  changesAfter,
  login,
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

const kind = 'api-sessions'
const enter = (more = {}) => one.identity.authenticate(login({ ...identity.admin, ...more }), system())
const storedAt = async (id: string): Promise<Date> => {
  const { rows } = await one.db.query<{ at: Date }>(
    sql`select last_activity_at as at from api_session where id = ${id}`,
  )
  return rows[0]?.at ?? new Date(0)
}
const backdate = (id: string, minutes: number) =>
  one.db.query(sql`
    update api_session set last_activity_at = now() - ${minutes}::float8 * interval '1 minute' where id = ${id}`)

test('a session is listed as the documents say, with its token', async () => {
  const { id, token, identityId } = await enter({ configTypes: ['all'] })
  const { json } = await one.entities.get({ ref: { kind, id }, perspective: undefined }, system())
  expect(parsed(json)).toEqual({
    _links: { self: { href: `./api-sessions/${id}` }, sessions: { href: `./api-sessions/${id}/sessions` } },
    id,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    tags: {},
    token,
    identityId,
    identity: expect.objectContaining({ entity: 'identities', id: identityId, name: 'Default Admin' }),
    authenticatorId: expect.any(String),
    ipAddress: '127.0.0.1',
    configTypes: ['all'],
    authQueries: [],
    isMfaRequired: false,
    isMfaComplete: false,
    isCertExtendable: false,
    lastActivityAt: expect.any(String),
    cachedLastActivityAt: expect.any(String),
  })
})

test('ids of sessions grow with time', async () => {
  const first = await enter()
  const second = await enter()
  expect(second.id > first.id).toBe(true)
})

test('opening a session writes no change log; its end does, without the token', async () => {
  const before = await one.changeLog.head()
  const { id, token } = await enter()
  expect(await changesAfter(one.changeLog, before)).toEqual([])
  await one.entities.delete({ kind, id }, system())
  const changes = await changesAfter(one.changeLog, before)
  expect(changes.map((change) => [change.kind, change.id, change.json.length])).toEqual([[kind, id, 0]])
  const { rows } = await one.db.query<{ text: string }>(
    sql`select before::text as text from audit where entity_id = ${id}`,
  )
  expect(rows[0]?.text).not.toContain(token)
})

test('a caller without admin rights ends its own session, and no other', async () => {
  const own = await enter()
  const other = await enter()
  const context = as({ identityId: own.identityId, apiSessionId: own.id })
  await expect(one.entities.delete({ kind, id: other.id }, context)).rejects.toMatchObject({
    code: 'NOT_FOUND',
  })
  await one.entities.delete({ kind, id: own.id }, context)
})

test('marks of use never move back or into the future; the answer lists sessions that do not exist', async () => {
  const { id } = await enter()
  await backdate(id, 10)
  const at = Date.now() - 60_000
  const mark = (replica: Replica, ...marks: [string, number][]) =>
    replica.identity.markActivity(
      { apiSessionIds: marks.map(([one]) => one), atMs: marks.map(([, ms]) => ms), accessTokenIds: [] },
      system(),
    )
  expect(await mark(one, [id, at], ['gone', at], [id, at - 5000])).toEqual({ unknownIds: ['gone'] })
  expect((await storedAt(id)).getTime()).toBe(at)
  await mark(two, [id, at - 30_000])
  expect((await storedAt(id)).getTime()).toBe(at)
  await mark(two, [id, Date.now() + 3_600_000])
  expect((await storedAt(id)).getTime()).toBeLessThanOrEqual(Date.now() + 1000)
})

test('many gateways mark the same sessions at once', async () => {
  const ids: string[] = []
  for (let i = 0; i < 20; i++) ids.push((await enter()).id)
  const marks = [...ids, ...[...ids].reverse()]
  await Promise.all(
    [one, two, one, two].map((replica, i) =>
      replica.identity.markActivity(
        {
          apiSessionIds: i % 2 ? [...marks].reverse() : marks,
          atMs: marks.map(() => Date.now()),
          accessTokenIds: [],
        },
        system(),
      ),
    ),
  )
})

test('idle sessions end, with changes for followers, by one replica at a time', async () => {
  const idle = await enter()
  const used = await enter()
  await backdate(idle.id, 31)
  const end = (replica: Replica) =>
    reapSessions(replica.changeLog, { idleMs: 30 * 60_000, lifetimeMs: 0 }, 500)
  const results = await Promise.all([end(one), end(two)])
  expect(results.flat()).toEqual([idle.id])
  await expect(
    two.identity.getApiSession({ bearerTokens: [], token: idle.token }, system()),
  ).rejects.toMatchObject({
    code: 'UNAUTHORIZED',
  })
  await two.identity.getApiSession({ bearerTokens: [], token: used.token }, system())
})

test('admins may search sessions by token and identity', async () => {
  const { id, token, identityId } = await enter()
  const page = await one.entities.list(
    {
      kind,
      query: { ...noQuery, filter: `token = "${token}" and identity = "${identityId}"` },
      within: undefined,
      perspective: undefined,
    },
    system(),
  )
  expect(parsed<{ id: string }[]>(page.rows).map((row) => row.id)).toEqual([id])
})

test('a partial session is refused by the check, and its answer shows that it is partial', async () => {
  const { id } = await enter()
  const { position } = await one.identity.checkApiSession({ id }, system())
  expect(position).toEqual(await one.changeLog.head())
  await one.entities.update(
    {
      ref: { kind: 'auth-policies', id: 'default' },
      json: bytes({ secondary: { requireTotp: true } }),
      mask: ['secondary.requireTotp'],
    },
    system(),
  )
  await expect(one.identity.checkApiSession({ id }, system())).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})
