import { metrics } from '@overlay/process'
import { POOL_SIZE, type Tx } from '@overlay/store/postgres'
import sql, { raw } from 'sql-template-tag'
import { expect, test } from 'vitest'
import { admin, as, named, networkOfFile } from './network.js'

const { network, policy } = await networkOfFile()
const { owner } = network

const make = (kind: string, row: object) => policy.create(kind, named(row))
const service = () => make('services', { encryptionRequired: true })
const check = () => make('posture-checks', { typeId: 'DOMAIN', domains: ['x'] })
const grant = (row: object) => make('service-policies', { type: 'Dial', semantic: 'AnyOf', ...row })
const route = (row: object) => make('edge-router-policies', { semantic: 'AnyOf', ...row })
const config = () =>
  make('configs', { configTypeId: 'NH5p4FpGR', data: { protocol: 'tcp', address: 'localhost', port: 80 } })

/** Until so many statements wait for locks. */
async function waiting(count: number): Promise<void> {
  await expect
    .poll(async () => {
      const { rows } = await owner.query<{ n: number }>(sql`
        select count(*) as n from pg_stat_activity
         where wait_event_type = 'Lock' and datname = current_database() and application_name = 'policy'`)
      return rows[0]?.n
    })
    .toBe(count)
}

/** What is begun while a transaction has done `first`; once `count` of it wait, that does `last` and commits. */
async function during<T>(
  first: (tx: Tx) => Promise<unknown>,
  begin: () => Promise<T>[],
  count: number,
  last: (tx: Tx) => Promise<unknown> = async () => undefined,
): Promise<PromiseSettledResult<T>[]> {
  let begun: Promise<T>[] = []
  await owner.transaction(undefined, async (tx) => {
    await first(tx)
    begun = begin()
    for (const one of begun) one.catch(() => undefined)
    await waiting(count)
    await last(tx)
  })
  return Promise.allSettled(begun)
}

const lock = (table: string, ids: readonly string[]) => (tx: Tx) =>
  tx.query(sql`select from ${raw(table)} where id = any(${ids}) order by id for update`)
/** Nobody commits a change then. */
const lockStream = (tx: Tx) => tx.query(sql`select from stream for update`)
const fulfilled = (count: number) => Array.from({ length: count }, () => ({ status: 'fulfilled' }))
const refused = (field: string) => ({
  status: 'rejected',
  reason: expect.objectContaining({
    code: 'COULD_NOT_VALIDATE',
    detail: expect.objectContaining({ field }),
  }),
})

test.each([
  ['service', 'serviceRoles', service],
  ['posture_check', 'postureCheckRoles', check],
] as const)('a policy that names a %s which is being deleted is refused', async (table, field, create) => {
  const id = await create()
  const policyId = await grant({})
  const outcome = await during(
    lock(table, [id]),
    () => [
      grant({ [field]: [`@${id}`] }),
      policy.update('service-policies', policyId, { [field]: [`@${id}`] }).then(String),
    ],
    2,
    (tx) => tx.query(sql`delete from ${raw(table)} where id = ${id}`),
  )
  expect(outcome).toMatchObject([refused(field), refused(field)])
})

test.each([
  ['services', 'serviceRoles', service],
  ['posture-checks', 'postureCheckRoles', check],
] as const)('a delete of %s waits for a policy that names it, and cleans it', async (kind, field, create) => {
  const id = await create()
  const outcome = await during(
    lockStream,
    () => [grant({ name: `first-${kind}`, [field]: [`@${id}`, '#kept'] })],
    1,
    async () => {
      deleting = policy.remove(kind, id)
      await waiting(2)
    },
  )
  await deleting
  expect(outcome).toMatchObject(fulfilled(1))
  const [row] = await policy.list('service-policies', { filter: `name = "first-${kind}"` })
  expect(row?.[field]).toEqual(['#kept'])
})
let deleting: Promise<unknown> | undefined

test.each([
  ['identities', 'identity', 'service-policies', 'identityRoles', grant],
  ['edge-routers', 'sessions', 'edge-router-policies', 'edgeRouterRoles', route],
] as const)('%s whose deletion is followed during the write are named by no policy', async (...args) => {
  const [what, schema, kind, field, create] = args
  const other = network[schema]
  const before = `${what}-before`
  await other.put(before, {})
  const outcome = await during(
    lockStream,
    () => [create({ name: before, [field]: [`@${before}`, '#kept'] })],
    1,
    async () => {
      await other.remove(before)
      await waiting(2) // the follower waits for the write
    },
  )
  expect(outcome).toMatchObject(fulfilled(1))
  const rolesOf = async () => (await policy.list(kind, { filter: `name = "${before}"` }))[0]?.[field]
  await expect.poll(rolesOf).toEqual(['#kept'])

  const after = `${what}-after`
  await other.put(after, {})
  other.beforeNextView(async () => {
    const position = await other.remove(after)
    await policy.changes.reach({ schema, position }, admin)
  })
  await expect(create({ [field]: [`@${after}`] })).rejects.toMatchObject(refused(field).reason)
})

test('an identity whose deletion is followed during the write gets no configs and no posture', async () => {
  const [serviceId, configId] = [await service(), await config()]
  await network.identity.put('leaver', {})
  const caller = as({ identityId: 'leaver', apiSessionId: 's' })
  const report = { responses: [Buffer.from(JSON.stringify({ id: 'x', typeId: 'DOMAIN', domain: 'd' }))] }
  const outcome = await during(
    lockStream,
    () => [
      policy.policy.putServiceConfigs({ identityId: 'leaver', configs: [{ serviceId, configId }] }, admin),
    ],
    1,
    async () => {
      await network.identity.remove('leaver')
      await waiting(2)
    },
  )
  expect(outcome).toMatchObject(fulfilled(1))
  const left = async () => {
    const { rows } = await owner.query(sql`
      select identity_id from service_config where identity_id = 'leaver'
       union all select identity_id from posture_data where identity_id = 'leaver'`)
    return rows.length
  }
  await expect.poll(left).toBe(0)
  await expect(policy.policy.submitPosture(report, caller)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  expect(await left()).toBe(0)
})

test('as many updates as there are connections may name entities at once', async () => {
  const id = await service()
  const policies = await Promise.all(Array.from({ length: POOL_SIZE }, () => grant({})))
  const update = (one: string) => policy.update('service-policies', one, { serviceRoles: [`@${id}`] })
  const outcome = await during(lock('service_policy', policies), () => policies.map(update), POOL_SIZE)
  expect(outcome).toMatchObject(fulfilled(POOL_SIZE))
})

test('services and the configs that they name are changed and deleted in one order', async () => {
  const [id, kept] = [await config(), await config()]
  const before = await repeated()
  const services = await Promise.all(
    [0, 1, 2].map(() => make('services', { encryptionRequired: true, configs: [id] })),
  )
  const outcome = await during(
    lock('service', services),
    () => services.map((one) => policy.update('services', one, { configs: [id] })),
    3,
    async () => {
      deleting = policy.remove('configs', id) // waits for the updates, which wait for their services
      await waiting(4)
    },
  )
  await deleting
  expect(outcome).toMatchObject(fulfilled(3))
  const shown = await policy.list('services', { filter: `anyOf(configs) = "${id}"` })
  expect(shown).toEqual([])
  expect(await repeated()).toBe(before)
  await policy.update('services', services[0] ?? '', { configs: [kept] })
})

async function repeated(): Promise<number> {
  const { values } = await metrics.databaseRepeated.get()
  return values.find(({ labels }) => labels.schema === 'policy')?.value ?? 0
}

test('policies that name several services are cleaned in one order', async () => {
  await using other = await network.replica()
  const before = await repeated()
  const services = await Promise.all([service(), service(), service()])
  const roles = services.map((id) => `@${id}`)
  const policies = await Promise.all([0, 1, 2].map(() => grant({ serviceRoles: roles })))
  const outcome = await during(
    lock('service_policy', policies),
    () => [
      ...services.map((id, i) => (i === 0 ? other : policy).remove('services', id)),
      policy.update('service-policies', policies[1] ?? '', { serviceRoles: ['#none'] }),
    ],
    3, // two deletes share a transaction
  )
  expect(outcome).toMatchObject(fulfilled(4))
  for (const id of policies.slice(0, 1))
    expect(await policy.get('service-policies', id)).toMatchObject({ serviceRoles: null })
  expect(await repeated()).toBe(before)
})

test('an update that does not name configs does not wait for their deletion', async () => {
  const id = await config()
  const named = await make('services', { encryptionRequired: true, configs: [id] })
  const outcome = await during(
    lock('config', [id]),
    () => [policy.update('services', named, { maxIdleTimeMillis: 5 })],
    0,
  )
  expect(outcome).toMatchObject(fulfilled(1))
})
