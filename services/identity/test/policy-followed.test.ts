import type { Change } from '@overlay/rpc'
import { recordingDeletions, withLoadedRows } from '@overlay/store/change-log'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { raw } from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { policyEffects } from '../src/consumers/policy.js'
import { openSession } from '../src/store/api-sessions.js'
import {
  bytes,
  lockWaits,
  login,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'

let identity: TestIdentity
let one: Replica
let count = 0
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

const upto = { timeline: '00000000-0000-4000-8000-000000000000', number: 1 }
const living = new Set<string>()
const effects = recordingDeletions(
  'policy',
  ['services'],
  policyEffects(async (_kind, ids) => new Map(ids.filter((id) => living.has(id)).map((id) => [id, id]))),
)
const change = (kind: string, id: string, json: object | null): Change => ({
  kind,
  id,
  json: json ? bytes(json) : Buffer.alloc(0),
  atMs: 0,
  number: 1,
})
const deletion = (kind: string, id: string): Change => change(kind, id, null)

const following = (work: (tx: Tx) => ReturnType<typeof effects.apply>) =>
  one.changeLog.write(system(), async (tx) => ({ result: undefined, changes: await work(tx) }))
const follow = (...changes: Change[]) => following((tx) => effects.apply(tx, changes, upto))
const reload = (...rows: Change[]) =>
  following((tx) => withLoadedRows(tx, [rows], (loaded) => effects.reload(tx, loaded, upto)))

function newService(): string {
  const id = `s${++count}`
  identity.world.services.add(id)
  return id
}
async function newType() {
  const id = `t${++count}`
  await follow(change('config-types', id, { name: `${id}.v1` }))
  return id
}
const create = async (hosting: object) => {
  const body = { name: `host ${++count}`, type: 'Default', isAdmin: false, ...hosting }
  return (await one.entities.create({ kind: 'identities', json: bytes(body) }, system())).id
}
const update = (id: string, hosting: object) =>
  one.entities.update(
    { ref: { kind: 'identities', id }, json: bytes(hosting), mask: Object.keys(hosting) },
    system(),
  )
const hostingOf = async (id: string) => {
  const { json } = await one.entities.get(
    { ref: { kind: 'identities', id }, perspective: undefined },
    system(),
  )
  const { serviceHostingCosts, serviceHostingPrecedences } = parsed(json)
  return [serviceHostingCosts, serviceHostingPrecedences]
}
const enter = (...configTypes: string[]) =>
  one.identity.authenticate(login({ ...identity.admin, configTypes }), system())
const typesOf = async (id: string, db: Db = one.db) => {
  const { rows } = await db.query<{ types: string[] }>(
    sql`select config_types as types from api_session where id = ${id}`,
  )
  return rows[0]?.types
}
/** Waits until another connection waits for a lock. */
const lockAwaited = () => expect.poll(() => lockWaits(one.db)).toBe(1)

test('a service that is deleted is removed from hosting costs and precedences, with audit and change log', async () => {
  const [deleted, remaining] = [newService(), newService()]
  const id = await create({
    serviceHostingCosts: { [deleted]: 3, [remaining]: 4 },
    serviceHostingPrecedences: { [deleted]: 'required' },
  })
  const other = await create({ serviceHostingCosts: { [remaining]: 5 } })
  const { position } = await follow(deletion('services', deleted))
  expect(await hostingOf(id)).toEqual([{ [remaining]: 4 }, {}])
  expect(await hostingOf(other)).toEqual([{ [remaining]: 5 }, {}])
  const { rows } = await one.db.query(sql`
    select kind, entity_id as id, before->'serviceHostingCosts' as before, after->'serviceHostingCosts' as after
      from audit order by number desc limit 1`)
  const costs = { before: { [deleted]: 3, [remaining]: 4 }, after: { [remaining]: 4 } }
  expect(rows).toEqual([{ kind: 'identities', id, ...costs }])
  const { changes } = await one.changeLog.pull({ ...upto, ...position, number: (position?.number ?? 0) - 1 })
  expect(changes.map(({ id: changed, json }) => [changed, parsed(json).serviceHostingCosts])).toEqual([
    [id, costs.after],
  ])
})

test('a config type that is deleted is removed from API sessions', async () => {
  const [deleted, remaining] = [await newType(), await newType()]
  const { id } = await enter(remaining, deleted)
  const { id: every } = await enter('all')
  expect(await typesOf(id)).toEqual([remaining, deleted])
  await follow(deletion('config-types', deleted))
  expect(await typesOf(id)).toEqual([remaining])
  expect(await typesOf(every)).toEqual(['all'])
})

test('a load removes what was deleted unnoticed, and nothing that is younger than the load', async () => {
  const [deleted, remaining, young] = [newService(), newService(), newService()]
  const [deletedType, remainingType, youngType] = [await newType(), await newType(), await newType()]
  const id = await create({ serviceHostingCosts: { [deleted]: 1, [remaining]: 2, [young]: 3 } })
  const session = await enter(deletedType, remainingType, youngType)
  living.add(young).add(youngType)
  await reload(change('services', remaining, {}), change('config-types', remainingType, { name: 'renamed' }))
  expect(await hostingOf(id)).toEqual([{ [remaining]: 2, [young]: 3 }, {}])
  expect(await typesOf(session.id)).toEqual([remainingType, youngType])
  expect((await enter('renamed', deletedType)).configTypes).toEqual([remainingType])
})

test('only deletions of services and changes of config types concern identities', async () => {
  const concerns = (one: Change) => effects.concerns?.(one)
  expect(effects.kinds).toEqual(['services', 'config-types'])
  expect(await concerns(deletion('services', 'a'))).toBe(true)
  expect(await concerns(change('services', 'a', {}))).toBe(false)
  expect(await concerns(change('config-types', 'a', {}))).toBe(true)
})

test('identities that host a deleted service are found by an index', async () => {
  const statements: string[] = []
  const watched = await identity.replica({ onStatement: (text) => statements.push(text) })
  await watched.db.transaction(undefined, (tx) => effects.apply(tx, [deletion('services', 'none')], upto))
  const plan = await one.db.transaction(undefined, async (tx) => {
    await tx.query(sql`set local enable_seqscan = off`)
    const explain = raw(`explain ${statements.find((text) => text.includes('?|'))?.replace('$1', "'{a}'")}`)
    const { rows } = await tx.query<Record<'QUERY PLAN', string>>(explain)
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  })
  expect(plan).toContain('identity_by_hosted_service')
})

test.each([
  ['a create', (hosting: object) => create(hosting)],
  [
    'an update',
    async (hosting: object) => {
      const id = await create({})
      await update(id, hosting)
    },
  ],
])('%s is refused when its service is deleted after it was looked up', async (_what, write) => {
  const service = newService()
  identity.world.lookedUp = () => follow(deletion('services', service))
  const writing = write({ serviceHostingPrecedences: { [service]: 'failed' } })
  await expect(writing).rejects.toMatchObject({ code: 'NOT_FOUND' })
  identity.world.lookedUp = async () => undefined
  const { rows } = await one.db.query(sql`
    select from identity where (service_hosting_costs || service_hosting_precedences) ? ${service}`)
  expect(rows).toEqual([])
})

test('an update that sets no hosting looks no service up', async () => {
  const service = newService()
  const id = await create({ serviceHostingCosts: { [service]: 1 } })
  identity.world.lookedUp = () => Promise.reject(new Error('looked up'))
  await update(id, { roleAttributes: ['a'] })
  identity.world.lookedUp = async () => undefined
  expect(await hostingOf(id)).toEqual([{ [service]: 1 }, {}])
  await expect(update(id, { serviceHostingCosts: { none: 1 } })).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('a create that conflicts with another identity is refused as such also with hosting costs', async () => {
  const service = newService()
  const name = `taken ${++count}`
  await create({ name })
  const again = create({ name, serviceHostingCosts: { [service]: 1 } })
  await expect(again).rejects.toMatchObject({ detail: { field: 'name' } })
})

test('a login waits for a deletion of its config type under way, and does not name it', async () => {
  const [deleted, remaining] = [await newType(), await newType()]
  let entering: ReturnType<typeof enter> | undefined
  await following(async (tx) => {
    const changes = await effects.apply(tx, [deletion('config-types', deleted)], upto)
    entering = enter(deleted, remaining)
    await lockAwaited()
    return changes
  })
  expect((await entering)?.configTypes).toEqual([remaining])
})

test('a deletion waits for a login under way that names the config type, and finds its session', async () => {
  const [deleted, remaining] = [await newType(), await newType()]
  const before = await enter()
  const { rows } = await one.db.query<{ id: string; password: string }>(
    sql`select id, password from authenticator where identity_id = ${before.identityId}`,
  )
  const [proof] = rows
  if (!proof) throw new Error('the admin has no password')
  let deleting: ReturnType<typeof follow> | undefined
  const session = await one.db.transaction(undefined, async (tx) => {
    const opened = await openSession(tx, {
      identityId: before.identityId,
      authenticatorId: proof.id,
      method: 'updb',
      password: proof.password,
      fingerprint: null,
      ipAddress: '',
      configTypes: [remaining, deleted],
      isCertExtendable: false,
    })
    deleting = follow(deletion('config-types', deleted))
    await lockAwaited()
    expect(await typesOf(opened?.id ?? '', tx)).toEqual([remaining, deleted])
    return opened
  })
  await deleting
  expect(await typesOf(session?.id ?? '')).toEqual([remaining])
})

test('logins while services and config types are deleted with what names them never fail', async () => {
  for (let round = 0; round < 5; round++) {
    const [type, service] = [await newType(), newService()]
    const { identityId } = await enter()
    await update(identityId, { serviceHostingCosts: { [service]: 1 } })
    const logins = Array.from({ length: 4 }, () => enter(type, 'all-but'))
    const [sessions] = await Promise.all([
      Promise.all(logins),
      follow(deletion('services', service), deletion('config-types', type)),
    ])
    expect(await Promise.all(sessions.map(({ id }) => typesOf(id)))).toEqual([[], [], [], []])
    expect(await hostingOf(identityId)).toEqual([{}, {}])
  }
})

test.each([
  ['none requested, none answered', () => [], () => []],
  ['all is all, whatever stands beside it', (id: string) => [id, 'all'], () => ['all']],
  ['ids stay', (id: string) => [id], (id: string) => [id]],
  ['names become ids', (id: string) => [`${id}.v1`], (id: string) => [id]],
  ['each counts once', (id: string, b: string) => [b, `${id}.v1`, id, b], (id: string, b: string) => [b, id]],
  ['unknown config types are dropped', (id: string) => ['none', id, 'none.v1'], (id: string) => [id]],
])('config types of a login: %s', async (_rule, named, expected) => {
  const [a, b] = [await newType(), await newType()]
  expect((await enter(...named(a, b))).configTypes).toEqual(expected(a, b))
})
