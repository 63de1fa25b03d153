import { kinds } from '@overlay/model'
import { expect, test, vi } from 'vitest'
import { admin, as, named, networkOfFile } from './network.js'

const { network, policy } = await networkOfFile()
const other = await network.replica()
const { db } = policy.changeLog
const query = db.query.bind(db)
const statements = vi.spyOn(db, 'query')

await network.identity.put('alice', {})

const newType = () => policy.create('config-types', named({ schema: { type: 'object' } }))
const newService = () => policy.create('services', named({ encryptionRequired: true }))

const rows: Readonly<Record<string, object>> = {
  configs: { configTypeId: 'NH5p4FpGR', data: { protocol: 'tcp', address: 'localhost', port: 80 } },
  'config-types': { schema: { type: 'object' } },
  'posture-checks': { typeId: 'MAC', macAddresses: ['00:11'] },
  services: { encryptionRequired: true },
  'service-policies': { type: 'Bind', semantic: 'AllOf', identityRoles: ['@alice'] },
  'edge-router-policies': { semantic: 'AnyOf', edgeRouterRoles: ['#a'] },
  'service-edge-router-policies': { semantic: 'AnyOf', edgeRouterRoles: ['#a'] },
}

/** The numbers of rows that each statement about single rows of the kind was asked for during `work`. */
async function readsOf(kind: string, work: () => Promise<unknown>): Promise<number[]> {
  statements.mockClear()
  await work()
  return statements.mock.calls
    .filter(([, name]) => String(name).startsWith(`get-${kind}-`))
    .map(([{ values }]) => (values[0] as readonly string[]).length)
}

/** Holds the answer to the next statement until `release` is called. */
function holdNext(): { readonly begun: Promise<void>; release(): void } {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  statements.mockImplementationOnce(async (...statement) => {
    const answer = await query(...statement)
    begun.resolve()
    await released.promise
    return answer
  })
  return { begun: begun.promise, release: released.resolve }
}

const owned = [...kinds.values()].filter(
  ({ owner, kind }) => owner === 'policy' && kind !== 'posture-check-types',
)

test.each(owned.map(({ kind }) => kind))('reads of %s at the same time share a statement', async (kind) => {
  const create = async () => {
    const row = named(rows[kind] ?? {})
    return { id: await policy.create(kind, row), name: row.name }
  }
  const [a, b] = [await create(), await create()]
  const read = async () => {
    const shown = await Promise.allSettled([a.id, 'unknown', b.id, a.id].map((id) => policy.get(kind, id)))
    expect(shown).toMatchObject([{ value: a }, { reason: { code: 'NOT_FOUND' } }, { value: b }, { value: a }])
  }
  expect(await readsOf(kind, read)).toEqual([3])
})

test('a read that arrives while a statement runs is as new as its arrival', async () => {
  const id = await newType()
  const held = holdNext()
  const first = policy.get('config-types', id)
  await held.begun
  const { name } = named({})
  await other.update('config-types', id, { name })
  const later = policy.get('config-types', id)
  held.release()
  expect((await first).name).not.toBe(name)
  expect((await later).name).toBe(name)
})

test('a read that fails harms no other', async () => {
  const id = await newType()
  const shown = await Promise.allSettled([id, '\0', id].map((id) => policy.get('config-types', id)))
  expect(shown).toMatchObject([{ value: { id } }, { status: 'rejected' }, { value: { id } }])
})

test('a read whose deadline passes while it waits is refused, and those beside it are not', async () => {
  const id = await newType()
  const held = holdNext()
  const first = policy.get('config-types', id)
  await held.begun
  const late = policy.get('config-types', id, { ...admin, deadline: new Date(0) })
  const beside = policy.get('config-types', id)
  held.release()
  await expect(late).rejects.toMatchObject({ code: 'TIMEOUT' })
  expect([await first, await beside]).toMatchObject([{ id }, { id }])
})

test('a client reads its own services, whatever is read at the same time', async () => {
  const [own, foreign] = [await newService(), await newService()]
  const policyId = await policy.create(
    'service-policies',
    named({ type: 'Dial', semantic: 'AnyOf', identityRoles: ['@alice'], serviceRoles: [`@${own}`] }),
  )
  await policy.engine.catchUp({ signal: AbortSignal.timeout(30_000) })
  const alice = as({ identityId: 'alice' })
  const shown = await Promise.allSettled([
    policy.get('services', own, alice),
    policy.get('services', foreign, alice),
    policy.get('services', foreign),
  ])
  expect(shown).toMatchObject([
    { value: { id: own, permissions: ['Dial'] } },
    { reason: { code: 'NOT_FOUND' } },
    { value: { id: foreign } },
  ])
  await policy.remove('service-policies', policyId)
})
