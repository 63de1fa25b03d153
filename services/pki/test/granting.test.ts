import { randomUUID } from 'node:crypto'
import type { EnrollmentWish } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { context, noWish, type Pki, startPki } from './network.js'

let pki: Pki
beforeAll(async () => {
  pki = await startPki()
  await pki.pki.checkEnrollment({ ...noWish, identityId: 'i' }, context) // identity is followed then
})
afterAll(() => pki[Symbol.asyncDispose]())

const newWish = (): EnrollmentWish => ({
  ...noWish,
  id: randomUUID(),
  token: randomUUID(),
  identityId: randomUUID(),
})
const follow = ({ identityId, ...wish }: EnrollmentWish) =>
  pki.follow('identity', 'identities', identityId, { enrollmentWanted: { ...wish, identityId } })
const rowOf = async (id: string) => (await pki.outstanding()).find((row) => row.id === id)

async function writes(table: 'audit' | 'change', id: string): Promise<number> {
  const rows =
    table === 'audit'
      ? sql`select from audit where entity_id = ${id}`
      : sql`select from change where entity_id = ${id}`
  return (await pki.changeLog.db.query(rows)).rows.length
}

test('identity of 0.1.0 waits until its wish is granted', async () => {
  const wish = newWish()
  const { identityId } = wish
  const position = await pki.change('identity', 'identities', identityId, { enrollmentWanted: wish })
  await pki.pki.grantEnrollment({ wish, position }, context)
  const row = await rowOf(wish.id)
  expect(row).toMatchObject({ method: 'ott', token: wish.token, identityId, tags: {} })
})

test('followers and the audit do not get the token', async () => {
  const wish = newWish()
  const before = await pki.changeLog.head()
  await follow(wish)
  const { changes } = await pki.changeLog.pull(before)
  expect(changes.map(({ id }) => id)).toContain(wish.id)
  expect(changes.map(({ json }) => Buffer.from(json).toString()).join()).not.toContain(wish.token)
})

test('a wish that comes again makes one enrollment', async () => {
  const wish = newWish()
  await follow(wish)
  await follow(wish)
  expect([await writes('audit', wish.id), await writes('change', wish.id)]).toEqual([1, 1])
})

test('an outstanding enrollment of the same method stays', async () => {
  const first = newWish()
  await follow(first)
  const second = { ...newWish(), identityId: first.identityId }
  await follow(second)
  expect([(await rowOf(first.id))?.id, await rowOf(second.id)]).toEqual([first.id, undefined])
})

/** The row of an identity that was created with an enrollment, whose request pki has missed. */
async function promise(createdAt: Date, id: string = randomUUID()): Promise<string> {
  const identityId = randomUUID()
  pki.names.set(identityId, 'alice')
  await pki.follow('identity', 'identities', identityId, {
    name: 'alice',
    createdAt,
    enrollmentPromised: { id, method: 'ott' },
  })
  return id
}
const before = (minutes: number): Date => new Date(Date.now() - minutes * 60_000)

async function check(fix: boolean): Promise<readonly string[]> {
  const found: string[] = []
  for (const one of pki.checks)
    for await (const findings of one({ fix, context })) found.push(...findings.map((f) => f.description))
  return found
}

test('a load grants the enrollment that an identity was created with, for the rest of its time', async () => {
  const createdAt = before(100)
  const [recent, old, ended] = [await promise(createdAt), await promise(before(181)), randomUUID()]
  const wish = { ...newWish(), id: ended }
  await follow(wish)
  await pki.entities.delete({ kind: 'enrollments', id: ended }, context)
  await promise(createdAt, ended)
  expect(await rowOf(recent)).toBeUndefined()

  await pki.newTimeline('identity')
  await expect.poll(() => rowOf(recent), { timeout: 30_000 }).toBeDefined()
  const granted = await rowOf(recent)
  expect(granted).toMatchObject({ method: 'ott' })
  expect(Date.parse(String(granted?.expiresAt))).toBe(createdAt.getTime() + 180 * 60_000)
  expect([await rowOf(old), await rowOf(ended)]).toEqual([undefined, undefined])

  const later = await promise(before(1))
  await pki.newTimeline('identity')
  await expect.poll(() => rowOf(later), { timeout: 30_000 }).toBeDefined()
  expect(await rowOf(recent)).toEqual(granted)
})

test('the integrity check reports an enrollment that an identity was created with and has not got, and grants it', async () => {
  const missing = await promise(before(10))
  const finding = `enrollment ${missing} is missing, though it follows from schema identity`
  expect(await check(false)).toContain(finding)
  expect(await rowOf(missing)).toBeUndefined()
  expect(await check(true)).toContain(finding)
  expect(await rowOf(missing)).toMatchObject({ method: 'ott' })
  expect(await check(false)).not.toContain(finding)
})
