import { invalid, ownContext } from '@overlay/rpc'
import { entityService } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { edgeRouters } from '../src/kinds/edge-router.js'
import { freeNames } from './router-names.js'
import { startStore } from './store.js'

const pki = { view: async () => ({ json: [Buffer.from('{"enrollmentToken":"t"}')] }) }
const context = ownContext(new AbortController().signal)

async function startRouters(identity = freeNames) {
  const store = await startStore()
  const { changeLog } = store
  const { db } = changeLog
  const routers = entityService({
    changeLog,
    kinds: [edgeRouters({ db, identity, pki, waitForFollowers: async (written) => written })],
    names: async () => new Map(),
  })
  const ref = (id: string) => ({ kind: 'edge-routers', id })
  return {
    db,
    create: async (body: object) => {
      const json = Buffer.from(JSON.stringify(body))
      return (await routers.create({ kind: 'edge-routers', json }, context)).id
    },
    update: (id: string, body: object) =>
      routers.update(
        { ref: ref(id), json: Buffer.from(JSON.stringify(body)), mask: Object.keys(body) },
        context,
      ),
    get: async (id: string): Promise<Record<string, unknown>> => {
      const { json } = await routers.get({ ref: ref(id), perspective: undefined }, context)
      return JSON.parse(json.toString())
    },
    remove: (id: string) => routers.delete(ref(id), context),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

test('a router shows its written members, defaults, and its enrollment', async () => {
  await using store = await startRouters()
  const id = await store.create({
    name: 'r1',
    roleAttributes: ['b', 'a', 'b'],
    cost: 12,
    appData: { z: 'y' },
  })
  expect(await store.get(id)).toMatchObject({
    id,
    name: 'r1',
    roleAttributes: ['a', 'b'],
    cost: 12,
    noTraversal: false,
    appData: { z: 'y' },
    tags: {},
    isVerified: false,
    certPem: null,
    isOnline: false,
    enrollmentToken: 't',
    _links: { self: { href: `./edge-routers/${id}` } },
  })
  expect(await store.get(id)).not.toHaveProperty('fingerprint')
  expect(await store.get(id)).not.toHaveProperty('isEdge')
})

test('an update writes the members of its mask and no others', async () => {
  await using store = await startRouters()
  const id = await store.create({ name: 'r1', roleAttributes: ['a'], cost: 12 })
  await store.update(id, { cost: 3, roleAttributes: [] })
  expect(await store.get(id)).toMatchObject({ name: 'r1', cost: 3, roleAttributes: null })
})

test('a taken name is a field error, on create and on update', async () => {
  await using store = await startRouters()
  await store.create({ name: 'r1' })
  const id = await store.create({ name: 'r2' })
  const refused = { code: 'COULD_NOT_VALIDATE', detail: { field: 'name', value: 'r1' } }
  await expect(store.create({ name: 'r1' })).rejects.toMatchObject(refused)
  await expect(store.update(id, { name: 'r1' })).rejects.toMatchObject(refused)
})

test('attributes must not look like role entries', async () => {
  await using store = await startRouters()
  for (const word of ['#a', '@a', ''])
    await expect(store.create({ name: 'r1', roleAttributes: [word] })).rejects.toMatchObject({
      detail: { field: 'roleAttributes', value: word },
    })
})

test('a deleted router is not found, and its deletion is in the audit', async () => {
  await using store = await startRouters()
  const id = await store.create({ name: 'r1' })
  await store.remove(id)
  await expect(store.get(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(store.remove(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const { rows } = await store.db.query(sql`select kind, before, after from audit order by id`)
  expect(rows).toMatchObject([
    { kind: 'edge-routers', before: null, after: { name: 'r1' } },
    { kind: 'edge-routers', before: { name: 'r1' }, after: null },
  ])
})

/** Names that are reserved for routers, as identity keeps them. */
function openNames() {
  const reserved = new Map<string, string>()
  const calls: string[] = []
  return {
    reserved,
    calls,
    reserveRouterName: async ({ routerId, name }: { routerId: string; name: string }) => {
      calls.push(`reserve ${name}`)
      if ((reserved.get(name) ?? routerId) !== routerId) throw invalid('name', 'name must be unique', name)
      reserved.set(name, routerId)
      return {}
    },
    releaseRouterName: async ({ name }: { routerId: string; name: string }) => {
      calls.push(`release ${name}`)
      reserved.delete(name)
      return {}
    },
  }
}
const refused = { code: 'COULD_NOT_VALIDATE', detail: { field: 'name' } }

test('a router that tunnels reserves its name before it is written, and others reserve none', async () => {
  const names = openNames()
  await using store = await startRouters(names)
  const id = await store.create({ name: 'r1', isTunnelerEnabled: true })
  expect(names.reserved.get('r1')).toBe(id)
  const other = await store.create({ name: 'r2' })
  await store.update(other, { name: 'r3' })
  await store.update(id, { cost: 3 })
  expect(names.calls).toEqual(['reserve r1'])
  await store.update(id, { name: 'r4' })
  await store.update(other, { isTunnelerEnabled: true })
  expect(names.calls).toEqual(['reserve r1', 'reserve r4', 'reserve r3'])
})

test('a tunneling router whose name an identity has is refused, and nothing is written', async () => {
  const names = openNames()
  names.reserved.set('taken', 'an identity')
  await using store = await startRouters(names)
  const id = await store.create({ name: 'r1' })
  await expect(store.create({ name: 'taken', isTunnelerEnabled: true })).rejects.toMatchObject(refused)
  await expect(store.update(id, { name: 'taken', isTunnelerEnabled: true })).rejects.toMatchObject(refused)
  expect(await store.get(id)).toMatchObject({ name: 'r1', isTunnelerEnabled: false })
  const { rows } = await store.db.query(sql`select from audit`)
  expect(rows).toHaveLength(1)
})

test('a router that is refused otherwise releases its name, so that another may get it', async () => {
  const names = openNames()
  await using store = await startRouters(names)
  await store.create({ name: 'r1' })
  await expect(store.create({ name: 'r1', isTunnelerEnabled: true })).rejects.toMatchObject(refused)
  expect(names.calls).toEqual(['reserve r1', 'release r1'])
})

test('a router that is renamed while it begins to tunnel reserves the name that it gets', async () => {
  const names = openNames()
  await using store = await startRouters(names)
  const id = await store.create({ name: 'r1' })
  const { reserveRouterName } = names
  let renaming: Promise<unknown> | undefined
  names.reserveRouterName = async (request) => {
    renaming ??= store.update(id, { name: 'r2' })
    await renaming
    return reserveRouterName(request)
  }
  await store.update(id, { isTunnelerEnabled: true })
  expect(await store.get(id)).toMatchObject({ name: 'r2', isTunnelerEnabled: true })
  expect([...names.reserved]).toEqual([['r2', id]])
})

test('a router that another replica has changed to tunnel needs no name again', async () => {
  const names = openNames()
  await using store = await startRouters(names)
  const id = await store.create({ name: 'r1' })
  await store.db.query(sql`update router set is_tunneler_enabled = true where id = ${id}`)
  await store.update(id, { isTunnelerEnabled: true, cost: 3 })
  expect(await store.get(id)).toMatchObject({ isTunnelerEnabled: true, cost: 3 })
  expect(names.calls).toEqual([])
})
