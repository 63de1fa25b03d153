import { randomUUID } from 'node:crypto'
import type { EnrollmentWish, Position } from '@overlay/rpc'
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
const grant = (wish: EnrollmentWish, position: Position | undefined) =>
  pki.pki.grantEnrollment({ wish, position }, context)
const follow = ({ identityId, ...wish }: EnrollmentWish) =>
  pki.follow('identity', 'identities', identityId, { enrollmentWanted: { ...wish, identityId } })
const after = ({ timeline, number }: Position, more: number): Position => ({
  timeline,
  number: number + more,
})
const rowOf = async (id: string) => (await pki.outstanding()).find((row) => row.id === id)

async function writes(table: 'audit' | 'change', id: string): Promise<number> {
  const rows =
    table === 'audit'
      ? sql`select from audit where entity_id = ${id}`
      : sql`select from change where entity_id = ${id}`
  return (await pki.changeLog.db.query(rows)).rows.length
}

test('a wish at a position that is not consumed yet is granted at once, and not again later', async () => {
  const wish = newWish()
  await grant(wish, after(await pki.identityHead(), 1))
  const row = await rowOf(wish.id)
  expect(row).toMatchObject({ method: 'ott', token: wish.token, identityId: wish.identityId, tags: {} })
  await follow(wish)
  expect(await rowOf(wish.id)).toEqual(row)
  expect([await writes('audit', wish.id), await writes('change', wish.id)]).toEqual([1, 1])
})

test('followers get the same payload as of other enrollments, without secrets', async () => {
  const [ahead, followed] = [newWish(), newWish()]
  const before = await pki.changeLog.head()
  await grant(ahead, after(await pki.identityHead(), 1))
  await follow(ahead)
  await follow(followed)
  const { changes } = await pki.changeLog.pull(before)
  const [first, second] = changes.map(({ json }) => JSON.parse(Buffer.from(json).toString()) as object)
  expect(Object.keys(first ?? {}).sort()).toEqual([...Object.keys(second ?? {}), 'isNew'].sort())
  expect(JSON.stringify(first)).not.toContain(ahead.token)
})

test('concurrent wishes are all granted', async () => {
  const head = await pki.identityHead()
  const wishes = Array.from({ length: 20 }, newWish)
  await Promise.all(wishes.map((wish, i) => grant(wish, after(head, i + 1))))
  const ids = (await pki.outstanding()).map(({ id }) => id)
  expect(ids).toEqual(expect.arrayContaining(wishes.map(({ id }) => id)))
  for (const wish of wishes) await follow(wish)
})

test('a grant after the deletion of its owner has no effect', async () => {
  const wish = newWish()
  const position = await follow(wish)
  await pki.follow('identity', 'identities', wish.identityId, null)
  await grant(wish, position)
  expect(await rowOf(wish.id)).toBeUndefined()
})

test('a grant that waits while its position is consumed has no effect', async () => {
  const wish = newWish()
  const { db } = pki.changeLog
  let granted: Promise<unknown> = Promise.resolve()
  const { timeline, number } = await pki.identityHead()
  const waiting = async (): Promise<boolean> => {
    const { rows } = await db.query(sql`
      select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into enrollment%'`)
    return rows.length > 0
  }
  await db.transaction(undefined, async (tx) => {
    await tx.query(sql`select from followed where schema = 'identity' for update`)
    granted = grant(wish, { timeline, number: number + 1 })
    await expect.poll(waiting).toBe(true)
    await tx.query(sql`update followed set number = ${number + 1} where schema = 'identity'`)
  })
  await pki.change('identity', 'identities', 'other', {}) // advances the position
  await granted
  expect(await rowOf(wish.id)).toBeUndefined()
})

test('two wishes with one id make one enrollment, and the schema stays writable', async () => {
  const wish = newWish()
  const position = after(await pki.identityHead(), 1)
  await Promise.all([grant(wish, position), grant(wish, position), grant(newWish(), position)])
  await follow(wish)
  expect([await writes('audit', wish.id), await writes('change', wish.id)]).toEqual([1, 1])
  const next = newWish()
  await follow(next)
  expect(await rowOf(next.id)).toBeDefined()
})

test('a grant at a position of another timeline has no effect', async () => {
  const wish = newWish()
  await grant(wish, { timeline: randomUUID(), number: 1_000_000 })
  expect(await rowOf(wish.id)).toBeUndefined()
})

test('an outstanding enrollment of the same method stays', async () => {
  const first = newWish()
  await follow(first)
  const second = { ...newWish(), identityId: first.identityId }
  await follow(second)
  await grant(second, await pki.identityHead())
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
