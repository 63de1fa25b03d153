import { noQuery } from '@overlay/store/kind-store'
import { expect, test } from 'vitest'
import { admin, networkOfFile } from './network.js'

const { policy } = await networkOfFile()
const type = await policy.create('config-types', { name: 'any' })

const config = (name: string, bytes: number) =>
  policy.create('configs', { name, configTypeId: type, data: { of: 'x'.repeat(bytes) } })

/** The pages of a list, by the names of their rows. */
async function pagesOf(query: object): Promise<string[][]> {
  const pages: string[][] = []
  for (let after = Buffer.alloc(0); ; ) {
    const { rows, next } = await policy.entities.list(
      { kind: 'configs', query: { ...noQuery, ...query, after }, within: undefined, perspective: undefined },
      admin,
    )
    const names = (JSON.parse(Buffer.from(rows).toString()) as { name: string }[]).map(({ name }) => name)
    pages.push(names)
    if (next.length === 0) return pages
    after = Buffer.from(next)
  }
}

test('a page ends where its rows would not fit a message, and the next one continues there', async () => {
  const names = Array.from({ length: 40 }, (_, n) => `large${String(n).padStart(2, '0')}`)
  for (const name of names) await config(name, 250_000)
  const sort = 'name'
  const whole = await pagesOf({ sort, limit: '500' })
  expect(whole.length).toBeGreaterThan(1)
  expect(whole.flat()).toEqual(names)
  expect((await pagesOf({ sort: 'name desc', limit: '-1' })).flat()).toEqual(names.toReversed())
  expect((await pagesOf({ sort, limit: '37', offset: '2' })).flat()).toEqual(names.slice(2, 39))
  expect(await pagesOf({ sort, limit: '3' })).toEqual([names.slice(0, 3)])
})

test('a row that is too large is refused by its largest member, unless it shrinks', async () => {
  const refused = { code: 'COULD_NOT_VALIDATE', detail: { field: 'data' } }
  await expect(config('too large', 263_000)).rejects.toMatchObject(refused)
  const numbers = { of: Array<number>(1000).fill(1e300) } // ten times as long where it is stored
  await expect(
    policy.create('configs', { name: 'numbers', configTypeId: type, data: numbers }),
  ).rejects.toMatchObject(refused)
  const id = await config('almost', 262_000)
  await expect(policy.update('configs', id, { name: 'n'.repeat(200) })).rejects.toMatchObject(refused)
  await policy.update('configs', id, { data: { of: 'y' } })
})

test.each([
  ['keys', Object.fromEntries(Array.from({ length: 257 }, (_, n) => [`k${n}`, 1]))],
  ['characters', { ['k'.repeat(257)]: 1 }],
  ['bytes', { k: 'x'.repeat(17_000) }],
])('tags have a limit of %s, at create and at update', async (what, tags) => {
  const refused = {
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'tags', reason: expect.stringContaining(what) },
  }
  const row = { name: `tags ${what}`, configTypeId: type, data: {} }
  await expect(policy.create('configs', { ...row, tags })).rejects.toMatchObject(refused)
  const id = await policy.create('configs', row)
  await expect(policy.update('configs', id, { tags })).rejects.toMatchObject(refused)
})
