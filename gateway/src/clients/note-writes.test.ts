import type { Service } from '@overlay/model'
import {
  EntityServiceService,
  IdentityServiceService,
  ownContext,
  PkiServiceService,
  PolicyServiceService,
  type Position,
  SessionsServiceService,
} from '@overlay/rpc'
import { expect, test } from 'vitest'
import { ADMIN, fakes } from '../../testing/fakes.js'
import { startGateway } from '../../testing/gateway.js'
import { openWritePositions } from '../cache/write-positions.js'
import { noteWrites } from './note-writes.js'

const position: Position = { timeline: 't1', number: 7 }
const definitions = {
  identity: IdentityServiceService,
  pki: PkiServiceService,
  policy: PolicyServiceService,
  sessions: SessionsServiceService,
}
const owners = Object.keys(definitions) as Service[]
const context = ownContext(new AbortController().signal)

/** Every unary method whose response has a position, called once through the clients. */
async function notedAfter(service: 'own' | 'entities', owner: Service): Promise<Record<string, unknown>> {
  const fake = fakes()
  const noted: unknown[] = []
  const clients = noteWrites(fake.services, (schema, at) => noted.push([schema, at]))
  const methods = (service === 'own' ? clients[owner] : clients.entitiesOf(owner)) as unknown as Readonly<
    Record<string, (request: unknown, context: unknown) => Promise<unknown>>
  >
  const outcome: Record<string, unknown> = {}
  const definition = service === 'own' ? definitions[owner] : EntityServiceService
  for (const [name, { responseStream, responseDeserialize }] of Object.entries(definition)) {
    if (responseStream || !('position' in responseDeserialize(Buffer.alloc(0)))) continue
    fake.instead.set(`${owner}${service === 'own' ? '' : '.entities'}.${name}`, async () => ({ position }))
    await methods[name]?.({}, context)
    outcome[name] = noted.splice(0)
  }
  return outcome
}

test.each(owners)('every write of %s is noted by its client, whatever the handler does', async (owner) => {
  const { getApiSession, checkApiSession, ...writes } = await notedAfter('own', owner)
  expect(Object.keys(writes)).not.toEqual([])
  for (const noted of Object.values(writes)) expect(noted).toEqual([[owner, position]])
  expect([getApiSession ?? [], checkApiSession ?? []]).toEqual([[], []])
})

test.each(owners)('so is every write of a row that %s owns', async (owner) => {
  const noted = [[owner, position]]
  expect(await notedAfter('entities', owner)).toEqual({ create: noted, update: noted, delete: noted })
})

test.each(['revokeToken', 'endSession'] as const)(
  '%s of the provider is a write of identity',
  async (name) => {
    const fake = fakes()
    const noted: unknown[] = []
    const { oidc } = noteWrites(fake.services, (...args) => noted.push(args))
    fake.instead.set(`oidc.${name}`, async () => ({ position }))
    await oidc[name]({ clientId: '', token: '', idTokenHint: '' }, context)
    expect(noted).toEqual([['identity', position]])
  },
)

test('logins and new identities are additions, other writes are not', async () => {
  const fake = fakes()
  const at = (number: number): Position => ({ timeline: 't1', number })
  const positions = openWritePositions()
  const { identity, entitiesOf } = noteWrites(fake.services, positions.note)
  const { create } = entitiesOf('identity')
  fake.instead.set('identity.authenticate', async () => ({ position: at(7) }))
  await identity.authenticate({} as Parameters<typeof identity.authenticate>[0], context)
  fake.instead.set('identity.entities.create', async () => ({ position: at(8) }))
  await create({ kind: 'identities', json: Buffer.alloc(0), id: undefined }, context)
  expect([positions.positions(), positions.withoutAdditions()]).toEqual([{ identity: at(8) }, {}])
  fake.instead.set('identity.entities.create', async () => ({ position: at(9) }))
  await create({ kind: 'authenticators', json: Buffer.alloc(0), id: undefined }, context)
  expect(positions.withoutAdditions()).toEqual({ identity: at(9) })
  fake.instead.set('identity.removeMfaOf', async () => ({ id: 'i', position: at(10) }))
  await identity.removeMfaOf({ kind: 'identities', id: 'i' }, context)
  expect(positions.withoutAdditions()).toEqual({ identity: at(10) })
})

test('the position of policy after a write about a second factor is noted, too', async () => {
  const fake = fakes()
  const positions = openWritePositions()
  const { identity } = noteWrites(fake.services, positions.note)
  const policy: Position = { timeline: 'p', number: 3 }
  fake.instead.set('identity.verifyMfa', async () => ({ id: 'i', position, policy }))
  await identity.verifyMfa({ code: '123456' }, context)
  expect(positions.withoutAdditions()).toEqual({ identity: position, policy })
})

test('a response without a position is passed on as it is', async () => {
  const fake = fakes()
  const noted: unknown[] = []
  const { identity } = noteWrites(fake.services, (...args) => noted.push(args))
  fake.instead.set('identity.removeMfaOf', async () => ({ id: 'i', position: undefined }))
  const ref = { kind: 'identities', id: 'i' }
  expect(await identity.removeMfaOf(ref, context)).toEqual({ id: 'i', position: undefined })
  expect(noted).toEqual([['identity', undefined]])
})

test('a write through a gateway is a position that its next calls carry', async () => {
  await using gateway = await startGateway()
  gateway.fakes.instead.set('pki.refreshEnrollment', async () => ({ id: 'e1', position }))
  const { status } = await gateway.request('/edge/management/v1/enrollments/e1/refresh', {
    method: 'POST',
    token: ADMIN,
    body: { expiresAt: '2030-01-01T00:00:00.000Z' },
  })
  expect(status).toBe(200)
  await gateway.request('/edge/management/v1/enrollments', { token: ADMIN })
  const call = gateway.fakes.calls.findLast(({ method }) => method === 'pki.entities.list')
  expect(call?.context.positions).toEqual({ pki: position })
})
