import type { Field } from '@overlay/model'
import { openDatabase } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Replica, TestIdentity } from './identity.js'

// A definition with one more field, and its migration. The service is loaded afterwards, as modules of this file alone.
vi.resetModules()
afterAll(() => vi.resetModules())
const { authenticator, field, identity: identityKind } = await import('@overlay/model')
const add = (fields: object, name: string, added: Field) => Object.assign(fields, { [name]: added })
add(identityKind.fields, 'nickname', field.string({ fallback: 'none' }))
add(authenticator.fields, 'nickname', field.string({ fallback: 'none' }))
const { authority, certify } = await import('./certificates.js')
const { as, bytes, parsed, system, testIdentity } = await import('./identity.js')

let identity: TestIdentity
let one: Replica
beforeAll(async () => {
  identity = await testIdentity({
    async migrate(ownerUrl) {
      await using db = openDatabase(ownerUrl, 'identity')
      for (const table of [sql`identity`, sql`authenticator`])
        await db.query(sql`alter table ${table} add column nickname text not null default 'none'`)
    },
  })
  one = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

let count = 0
const create = async (more: object) => {
  const json = bytes({ name: `person ${++count}`, type: 'Default', isAdmin: false, ...more })
  return (await one.entities.create({ kind: 'identities', json }, system())).id
}
const nicknameOf = async (id: string) => {
  const ref = { kind: 'identities', id }
  return parsed((await one.entities.get({ ref, perspective: undefined }, system())).json).nickname
}
/** The last change of the identity, as followers get it. */
const changeOf = async (id: string) => {
  const { rows } = await one.db.query<{ entity: object }>(
    sql`select entity from change where entity_id = ${id} order by number desc limit 1`,
  )
  return rows[0]?.entity
}

test('a new field of an identity is stored by create, alone, in a batch and with hosting costs', async () => {
  expect(await nicknameOf(await create({ nickname: 'bob' }))).toBe('bob')
  expect(await nicknameOf(await create({}))).toBe('none')
  const ids = await Promise.all(['a', 'b', 'c'].map((nickname) => create({ nickname })))
  expect(await Promise.all(ids.map(nicknameOf))).toEqual(['a', 'b', 'c'])
  identity.world.services.add('s1')
  const hosting = await create({ nickname: 'host', serviceHostingCosts: { s1: 1 } })
  expect(await nicknameOf(hosting)).toBe('host')
  expect(await changeOf(hosting)).toMatchObject({ nickname: 'host' })
})

test('a new field of an identity reaches updates, lists and changes', async () => {
  const id = await create({ nickname: 'bob' })
  expect(await changeOf(id)).toMatchObject({ nickname: 'bob' })
  const update = { ref: { kind: 'identities', id }, json: bytes({ nickname: 'ann' }), mask: ['nickname'] }
  await one.entities.update(update, as({ isAdmin: true }))
  expect(await nicknameOf(id)).toBe('ann')
  expect(await changeOf(id)).toMatchObject({ nickname: 'ann' })
  const query = {
    filter: 'nickname = "ann"',
    sort: '',
    limit: '',
    offset: '',
    roleFilter: [],
    roleSemantic: '',
    after: Buffer.alloc(0),
  }
  const list = { kind: 'identities', query, within: undefined, perspective: undefined }
  const { rows } = await one.entities.list(list, system())
  expect(parsed<{ id: string }[]>(rows).map((row) => row.id)).toEqual([id])
})

test.each(['updb', 'cert'])(
  'a new field of an authenticator is stored by a create with %s',
  async (method) => {
    const issuer = await authority('signer')
    identity.world.trusted = [issuer.certificate.toString()]
    const { certificate } = await certify({ name: 'x', issuer })
    const proof =
      method === 'cert'
        ? { certPem: certificate.toString() }
        : { username: 'username', password: 'long enough' }
    const json = bytes({ method, identityId: await create({}), nickname: 'bob', ...proof })
    const { id } = await one.entities.create({ kind: 'authenticators', json }, system())
    const { rows } = await one.db.query(sql`select nickname from authenticator where id = ${id}`)
    expect(rows).toEqual([{ nickname: 'bob' }])
  },
)

test('a new field of an authenticator gets its fallback from an enrollment', async () => {
  const identityId = await create({})
  const added = await one.identity.addAuthenticator(
    {
      identityId,
      enrollmentId: 'e1',
      certPem: '',
      isIssuedByNetwork: false,
      username: 'someone',
      password: 'long enough',
      caId: '',
      peerCertificates: [],
    },
    system(),
  )
  const { rows } = await one.db.query(
    sql`select nickname from authenticator where id = ${added.authenticatorId}`,
  )
  expect(rows).toEqual([{ nickname: 'none' }])
})
