import { type Check, copies } from '@overlay/maintenance'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { routerEffects } from '../src/consumers/sessions.js'
import { admin, networkOfFile } from './network.js'

const { network, policy } = await networkOfFile()
const { owner } = network

async function run(verb: 'check' | 'fix', checks: readonly Check[] = policy.checks) {
  const found = []
  for (const check of checks)
    for await (const findings of check({ fix: verb === 'fix', context: admin })) found.push(...findings)
  return found
}

const followed = async (schema: 'identity' | 'sessions', position: object) =>
  policy.changes.reach({ schema, position: position as never }, admin)

/** A router that reaches itself; identity has not followed that yet. */
async function tunneler(id: string): Promise<void> {
  await followed('sessions', await network.sessions.put(id, { isEdge: true, isTunnelerEnabled: true }))
}
const rolesOf = async (id: string) => {
  const { identityRoles, edgeRouterRoles } = await policy.get('edge-router-policies', id)
  return [identityRoles, edgeRouterRoles]
}
/** A policy that names the identity, past the service. */
async function naming(id: string): Promise<string> {
  const row = { name: `names ${id}`, type: 'Dial', semantic: 'AnyOf', identityRoles: ['#kept'] }
  const policyId = await policy.create('service-policies', row)
  await owner.query(
    sql`update service_policy set identity_roles = identity_roles || ${[`@${id}`]}::text[] where id = ${policyId}`,
  )
  return policyId
}
const namedBy = async (id: string) => (await policy.get('service-policies', id)).identityRoles

/** After the answer to the n-th question from now on. */
const afterAnswer = (n: number, then: () => Promise<unknown>): void =>
  network.identity.beforeNextView(async () => (n === 1 ? then() : afterAnswer(n - 1, then)))

test('the system policy of a router may be older than the identity of the router', async () => {
  await tunneler('r1')
  expect(await run('check')).toEqual([])
  expect(await run('fix')).toEqual([])
  expect(await rolesOf('r1')).toEqual([['@r1'], ['@r1']])
})

test("the system policy of a router keeps the router's identity after its deletion", async () => {
  await tunneler('r2')
  await network.identity.put('r2', {})
  const user = await policy.create('edge-router-policies', {
    name: 'user',
    semantic: 'AnyOf',
    identityRoles: ['@r2'],
    edgeRouterRoles: ['@r2'],
  })
  await followed('identity', await network.identity.remove('r2'))
  expect(await rolesOf('r2')).toEqual([['@r2'], ['@r2']])
  expect(await rolesOf(user)).toEqual([null, ['@r2']])
  expect(await run('check')).toEqual([])
})

test('a reference to a missing entity is found, then repaired', async () => {
  const id = await naming('ghost')
  const description = `servicePolicy ${id} names identity ghost, which does not exist`
  expect(await run('check')).toEqual([{ description, fixed: false }])
  expect(await namedBy(id)).toEqual(['#kept', '@ghost'])
  expect(await run('fix')).toEqual([{ description, fixed: true }])
  expect(await run('check')).toEqual([])
  expect(await namedBy(id)).toEqual(['#kept'])
})

test('a reference that is valid when its owner is asked again is no finding', async () => {
  const id = await naming('late')
  afterAnswer(1, () => network.identity.put('late', {}))
  expect(await run('check')).toEqual([])
  await network.identity.remove('late')
  await policy.remove('service-policies', id)
})

test('a reference that is valid when it would be repaired is left alone', async () => {
  const id = await naming('later')
  afterAnswer(2, () => network.identity.put('later', {}))
  expect(await run('fix')).toEqual([])
  expect(await namedBy(id)).toEqual(['#kept', '@later'])
})

test('a copy is a finding only if it is wrong after all owners have been followed', async () => {
  await tunneler('r3')
  const { rows } = await owner.query(sql`delete from edge_router_policy where id = 'r3' returning *`)
  const restore = () =>
    owner.query(sql`
      insert into edge_router_policy
      select * from jsonb_populate_record(null::edge_router_policy, ${JSON.stringify(rows[0])}::jsonb)`)
  let waits = 0
  const check = (confirm: () => Promise<unknown>) =>
    copies(
      {
        changeLog: policy.changeLog,
        names: async () => new Map(),
        consumers: { sessions: { catchUp: async () => void (await confirm()) } },
      },
      { source: network.sessions.source, ...routerEffects(async () => new Map()) },
    )
  const missing = 'edgeRouterPolicy r3 is missing, though it follows from schema sessions'
  expect(await run('check', [check(async () => undefined)])).toEqual([{ description: missing, fixed: false }])
  expect(await run('check', [check(async () => (++waits === 2 ? restore() : undefined))])).toEqual([])
  expect(waits).toBe(2)
  await owner.query(sql`delete from edge_router_policy where id = 'r3'`)
  expect(await run('fix', [check(async () => undefined)])).toEqual([{ description: missing, fixed: true }])
  expect(await run('check')).toEqual([])
})
