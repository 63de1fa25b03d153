import { randomUUID } from 'node:crypto'
import type { Change } from '@overlay/rpc'
import type { Effects } from '@overlay/store/change-log'
import type { Database, Db, Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { identityEffects } from '../src/consumers/identity.js'
import { policyEffects } from '../src/consumers/policy.js'
import { sweepStep } from '../src/sweep/sweep-step.js'
import { startStore } from './store.js'

const upto = { timeline: randomUUID(), number: 2 }
const sweeper = { wake: () => undefined }

/** Notes statements by their name, or by their first words. */
function noting<D extends Db>(db: D, statements: string[]): D {
  return {
    ...db,
    query: (query, name) => {
      statements.push(typeof name === 'string' ? name : query.text.trim().split(/\s+/).slice(0, 3).join(' '))
      return db.query(query, name)
    },
  } as D
}

const notingDatabase = (db: Database, statements: string[]): Database => ({
  ...noting(db, statements),
  withAdvisoryLock: (name, work) =>
    db.withAdvisoryLock(name, (connection) =>
      work({
        ...noting(connection, statements),
        transaction: (inside) => connection.transaction((tx) => inside(noting<Tx>(tx, statements))),
      }),
    ),
})

async function startNoting() {
  const store = await startStore()
  const { changeLog } = store
  const { db } = changeLog
  return {
    db,
    /** The statements that follow from a change of a row: null, it is deleted. */
    async apply(effects: Effects, kind: string, row: object | null): Promise<string[]> {
      const statements: string[] = []
      const json = row ? Buffer.from(JSON.stringify(row)) : Buffer.alloc(0)
      const change: Change = { kind, id: 'x', json, number: 2, atMs: 0 }
      await db.transaction(undefined, (tx) => effects.apply(noting(tx, statements), [change], upto))
      return statements
    },
    async sweep(): Promise<string[]> {
      const statements: string[] = []
      const lost = { findLost: async () => ({ lost: [true], granting: [''] }) }
      const policy = { ...lost, findRequiring: async () => ({ policyIds: [] }) }
      const noted = { ...changeLog, db: notingDatabase(db, statements) }
      const deps = { changeLog: noted, policy, names: async () => new Map(), heads: async () => ({}) }
      while (await sweepStep(deps));
      return statements
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

test('a change of a policy is recorded, and the sweep looks for its sessions: no statement is without effect', async () => {
  await using started = await startNoting()
  expect(await started.apply(policyEffects(sweeper), 'service-policies', {})).toEqual(['record-revocations'])
  expect(await started.sweep()).toEqual(['new-scopes', 'sessions-of-scopes', 'mark-swept', 'large-scope'])
})

test('a session that a change of its policy ends costs the sweep two statements more', async () => {
  await using started = await startNoting()
  await started.db.query(sql`
    insert into session (id, token, type, api_session_id, service_id, identity_id, granting_policy_id)
    values ('s', 't', 'Dial', 'a', 'wiki', 'alice', 'x')`)
  await started.apply(policyEffects(sweeper), 'service-policies', null)
  expect(await started.sweep()).toEqual([
    'new-scopes',
    'sessions-of-scopes',
    'followed-positions',
    'mark-swept',
    'large-scope',
    'end-sessions',
  ])
  expect((await started.db.query(sql`select from session`)).rowCount).toBe(0)
})

test.each([
  ['services', { name: 'wiki' }, ['insert into known_service', 'record-revocations']],
  [
    'services',
    null,
    ['delete from session', 'delete from terminator', 'delete from known_service', 'record-revocations'],
  ],
  ['posture-checks', {}, ['record-revocations']],
  ['posture-checks', null, []],
])('policy: %s as %j take the statements that have an effect', async (kind, row, expected) => {
  await using started = await startNoting()
  expect(await started.apply(policyEffects(sweeper), kind, row)).toEqual(expected)
})

test.each([
  ['identities', { name: 'alice' }, ['record-revocations']],
  ['api-sessions', null, ['delete from session', 'record-revocations']],
])('identity: %s as %j take the statements that have an effect', async (kind, row, expected) => {
  await using started = await startNoting()
  expect(await started.apply(identityEffects(sweeper), kind, row)).toEqual(expected)
})
