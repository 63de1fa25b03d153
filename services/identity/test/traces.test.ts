import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bytes, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let identity: TestIdentity
let one: Replica
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

let count = 0
const newIdentity = async (): Promise<string> => {
  const json = bytes({ name: `traced-${count++}`, type: 'Default', isAdmin: false })
  return (await one.entities.create({ kind: 'identities', json }, system())).id
}
const trace = (id: string, more: object = {}) =>
  one.identity.traceIdentity(
    { id, enabled: true, duration: '1m', traceId: '', channels: [], ...more },
    system(),
  )
const stored = async (id: string) => {
  const { rows } = await one.db.query<Record<string, unknown>>(
    sql`select trace_id, channels from identity_trace where identity_id = ${id}`,
  )
  return rows
}

test('an identity is traced for the requested duration, under a new trace id or that of the request', async () => {
  const id = await newIdentity()
  const before = Date.now()
  const { traceId, untilMs } = await trace(id, { duration: '1h30m', channels: ['selectPath'] })
  expect(traceId).toMatch(/^[0-9a-f-]{36}$/)
  expect(untilMs - before).toBeGreaterThan(5_399_000)
  expect(await stored(id)).toEqual([{ trace_id: traceId, channels: ['selectPath'] }])
  expect((await trace(id, { traceId: 'mine', channels: ['all'] })).traceId).toBe('mine')
  expect(await stored(id)).toEqual([{ trace_id: 'mine', channels: [] }])
})

test('a trace ends when it is turned off, also twice, and with the identity', async () => {
  const [id, other] = [await newIdentity(), await newIdentity()]
  await trace(id)
  await trace(other)
  expect(await trace(id, { enabled: false, duration: '' })).toEqual({ traceId: '', untilMs: 0 })
  expect(await trace(id, { enabled: false, duration: 'nonsense' })).toEqual({ traceId: '', untilMs: 0 })
  expect(await stored(id)).toEqual([])
  await one.entities.delete({ kind: 'identities', id: other }, system())
  expect(await stored(other)).toEqual([])
})

test('an unknown identity is not found, and an invalid duration is refused', async () => {
  const id = await newIdentity()
  await expect(trace('nobody', { duration: 'nonsense' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(trace(id, { duration: 'nonsense' })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'duration', value: 'nonsense' },
  })
  expect(await stored(id)).toEqual([])
})
