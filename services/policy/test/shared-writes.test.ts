import { kinds } from '@overlay/model'
import type { Tx } from '@overlay/store/postgres'
import sql, { raw } from 'sql-template-tag'
import { expect, test, vi } from 'vitest'
import { named, networkOfFile, newName } from './network.js'

const { network, policy } = await networkOfFile()
const { owner } = network
const other = await network.replica()
const transactions = vi.spyOn(policy.changeLog.db, 'transaction')

await network.identity.put('alice', {})

const hostV1 = 'NH5p4FpGR'
const host = (port: number) => ({ protocol: 'tcp', address: 'localhost', port })
const config = (row: object = {}) =>
  policy.create('configs', named({ configTypeId: hostV1, data: host(80), ...row }))
const service = (row: object = {}) => policy.create('services', named({ encryptionRequired: true, ...row }))

const ofKind = async (kind: string): Promise<object> => {
  switch (kind) {
    case 'configs':
      return { configTypeId: hostV1, data: host(80) }
    case 'config-types':
      return { schema: { type: 'object' } }
    case 'posture-checks':
      return { typeId: 'MAC', macAddresses: ['00:11'] }
    case 'services':
      return { encryptionRequired: true, configs: [await config()] }
    case 'service-policies':
      return {
        type: 'Bind',
        semantic: 'AllOf',
        serviceRoles: [`@${await service()}`],
        identityRoles: ['@alice'],
      }
    default:
      return { semantic: 'AnyOf', edgeRouterRoles: ['#a'] }
  }
}

const owned = [...kinds.values()].filter(
  ({ owner, kind }) => owner === 'policy' && kind !== 'posture-check-types',
)

test.each(owned.map(({ kind }) => kind))(
  'creating, changing and deleting of %s leaves a change each',
  async (kind) => {
    const row = await ofKind(kind)
    const [name, renamed] = [newName(), newName()]
    const id = await policy.create(kind, { name, ...row, tags: { a: 1 } })
    const created = await policy.get(kind, id)
    expect(created).toMatchObject({ id, name, tags: { a: 1 } })
    await policy.update(kind, id, { name: renamed })
    const changed = await policy.get(kind, id)
    expect(changed).toEqual({ ...created, name: renamed, updatedAt: expect.any(String) })
    await policy.remove(kind, id)
    await expect(policy.get(kind, id)).rejects.toMatchObject({ code: 'NOT_FOUND' })

    const { rows } = await owner.query(sql`
    select a.before, a.after, c.entity, c.number is not null as "isFollowed"
      from policy.audit a left join policy.change c using (number)
     where a.kind = ${kind} and a.entity_id = ${id} order by a.id`)
    const [first, second] = [rows[0]?.after, rows[1]?.after]
    expect(first).toMatchObject({
      name,
      createdAt: created.createdAt,
      updatedAt: created.updatedAt,
      isSystem: false,
    })
    expect(second).toEqual({ ...first, name: renamed, updatedAt: changed.updatedAt })
    const { followed } = kinds.get(kind) ?? {}
    expect(rows).toEqual([
      { before: null, after: first, entity: followed ? first : null, isFollowed: followed },
      { before: first, after: second, entity: followed ? second : null, isFollowed: followed },
      { before: second, after: null, entity: null, isFollowed: followed },
    ])
  },
)

test('creates that arrive together share a transaction', async () => {
  transactions.mockClear()
  await Promise.all([config(), config(), config()])
  expect(transactions).toHaveBeenCalledTimes(1)
})

test('of writes that arrive together only the invalid ones fail', async () => {
  const taken = newName()
  await config({ name: taken })
  const bodies = [{}, { name: taken }, {}, { configTypeId: 'missing' }, { data: { port: 'no number' } }, {}]
  const outcome = await Promise.allSettled(bodies.map(config))
  const refused = (field: string) => ({
    status: 'rejected',
    reason: { code: 'COULD_NOT_VALIDATE', detail: { field } },
  })
  const fulfilled = { status: 'fulfilled' }
  expect(outcome).toMatchObject([
    fulfilled,
    refused('name'),
    fulfilled,
    refused('type'),
    { status: 'rejected', reason: { code: 'COULD_NOT_VALIDATE' } },
    fulfilled,
  ])
})

test('two changes of different members at the same time are both kept', async () => {
  const id = await config()
  const name = newName()
  await Promise.all([
    policy.update('configs', id, { name }),
    policy.update('configs', id, { data: host(81) }),
    other.update('configs', id, { tags: { a: 1 } }),
  ])
  expect(await policy.get('configs', id)).toMatchObject({ name, data: host(81), tags: { a: 1 } })
})

test('a change that another replica has made is kept', async () => {
  const id = await config()
  await other.update('configs', id, { data: host(82) })
  await policy.update('configs', id, { tags: { a: 1 } })
  expect(await policy.get('configs', id)).toMatchObject({ data: host(82), tags: { a: 1 } })
})

test('a config is checked against the type as it is now', async () => {
  const typeId = await policy.create('config-types', named({ schema: { type: 'object' } }))
  await config({ configTypeId: typeId, data: { a: 'x' } })
  const schema = { type: 'object', properties: { a: { type: 'number' } } }
  await other.update('config-types', typeId, { schema })
  await expect(config({ configTypeId: typeId, data: { a: 'x' } })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
  })
  await config({ configTypeId: typeId, data: { a: 1 } })
})

/** Runs `meanwhile` while a transaction holds what `lock` locks. */
async function holding<T>(lock: (tx: Tx) => Promise<unknown>, meanwhile: () => Promise<T>): Promise<T> {
  return owner.transaction(undefined, async (tx) => {
    await lock(tx)
    return meanwhile()
  })
}

const locking = (table: string, id: string) => (tx: Tx) =>
  tx.query(sql`select from policy.${raw(table)} where id = ${id} for update`)

test('a write that waits for a locked row delays no other', async () => {
  const [locked, free] = [await config(), await config()]
  let waiting: Promise<unknown>[] = []
  await holding(locking('config', locked), async () => {
    waiting = [
      policy.update('configs', locked, { tags: { a: 1 } }),
      policy.remove('configs', locked),
      service({ configs: [locked] }),
    ]
    for (const one of waiting) one.catch(() => undefined)
    await policy.update('configs', free, { tags: { a: 1 } })
    await service({ configs: [free] })
    await config()
  })
  const settled = await Promise.allSettled(waiting)
  expect(settled.map(({ status }) => status)).toContain('fulfilled')
})

test.each([
  [
    'service',
    'services',
    (id: string) => sql`insert into policy.service_policy (id, name, type, semantic, service_roles)
    values (${newName()}, ${newName()}, 1, 'AnyOf', array['@' || ${id}])`,
  ],
  [
    'config',
    'configs',
    (id: string) => sql`insert into policy.service
      (id, name, encryption_required, terminator_strategy, configs)
    values (${newName()}, ${newName()}, true, '', array[${id}])`,
  ],
])(
  'a %s whose user is committed while the delete waits for its row is removed from it',
  async (table, kind, insert) => {
    const id = kind === 'services' ? await service() : await config()
    let removing: Promise<unknown> = Promise.resolve()
    await holding(
      (tx) =>
        tx
          .query(sql`select from policy.${raw(table)} where id = ${id} for key share`)
          .then(() => tx.query(insert(id))),
      async () => {
        removing = policy.remove(kind, id)
        removing.catch(() => undefined)
        await expect
          .poll(async () => {
            const { rows } = await owner.query<{ n: number }>(sql`
            select count(*) as n from pg_stat_activity
             where wait_event_type = 'Lock' and datname = current_database() and application_name = 'policy'`)
            return rows[0]?.n
          })
          .toBe(1)
      },
    )
    await removing
    const column = kind === 'services' ? sql`service_policy where service_roles` : sql`service where configs`
    const value = kind === 'services' ? `@${id}` : id
    const { rows } = await owner.query(sql`select 1 from policy.${column} @> array[${value}]`)
    expect(rows).toEqual([])
  },
)
