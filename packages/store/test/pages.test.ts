import { parseQuery } from '@overlay/model'
import type { Caller } from '@overlay/rpc'
import type { QueryResultRow } from 'pg'
import sql, { type Sql } from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listRows } from '../src/kind-store/list-rows.js'
import { afterOf, cursorColumnOf, cursorIn, cursorOf, orderOf, pageOf } from '../src/kind-store/order.js'
import type { Db } from '../src/postgres/database.js'
import { openThings, symbols, type Things } from './things.js'

let things: Things
beforeAll(async () => {
  things = await openThings()
})
afterAll(() => things[Symbol.asyncDispose]())

const sortOf = (text: string) => parseQuery(text, { sort: '', limit: '', offset: '' }).sort

test.each([
  '',
  'sort by name',
  'sort by name desc',
  'sort by note',
  'sort by note desc',
  'sort by weight',
  'sort by weight desc',
  'sort by verified',
  'sort by verified desc, id desc',
  'sort by seenAt, isSystem desc',
  'sort by seenAt desc, note, name desc',
  'sort by verified, seenAt desc, shout desc',
  'sort by createdAt desc, id',
  'sort by verified desc, rank desc',
])('pages behind the last row of the one before are the whole list: %j', async (text) => {
  const sort = sortOf(text)
  const order = orderOf(sort, symbols)
  const whole = await things.query(sql`select id from thing order by ${order}`)
  for (const limit of [1, 2, 3]) {
    const received: unknown[] = []
    let after = sql`true`
    for (;;) {
      const rows = await things.query(sql`
        select id, ${cursorColumnOf(sort, symbols)} from thing where ${after}
         order by ${order} ${pageOf({ limit, offset: 0 })}`)
      received.push(...rows.map(({ id }) => id))
      const last = rows.at(-1)
      if (!last) break
      const cursor = cursorIn(cursorOf(last, null))
      if (cursor) after = afterOf(cursor, sort, symbols)
    }
    expect(received).toEqual(whole.map(({ id }) => id))
  }
})

test('a page starts at its offset', async () => {
  const rows = await things.query(sql`
    select id from thing order by ${orderOf([], symbols)} ${pageOf({ limit: 2, offset: 1 })}`)
  expect(rows.map(({ id }) => id)).toEqual(['b', 'c'])
})

test('rows that the offset skips are read from an index alone', async () => {
  await things.query(sql`
    insert into thing
    select 'many-' || n, 'name-' || n, repeat('x', 500), 1, null, false, null, now(), null, '{}', '{}'
      from generate_series(1, 2000) as n`)
  await things.query(sql`vacuum analyze thing`)
  const plans: string[] = []
  const db: Db = {
    async query<Row extends QueryResultRow>(statement: Sql) {
      plans.push(JSON.stringify(await things.query(sql`explain ${statement}`)))
      return { rows: await things.query<Row>(statement), command: '', rowCount: null, oid: 0, fields: [] }
    },
  }
  const rows = {
    from: sql`thing`,
    ofPage: sql`thing where thing.id = page_id`,
    shown: [sql`note`],
    symbols,
  }
  const query = parseQuery('', { sort: '', limit: '', offset: '1000' })
  const caller = { isAdmin: true, identityId: '' } as Caller
  const page = await listRows(db, rows, query, sql`true`, Buffer.alloc(0), caller)
  await things.query(sql`delete from thing where id like 'many-%'`)
  expect([page.rows.length, Number(page.total)]).toEqual([10, 2004])
  const [skipping] = plans.join().match(/CTE page.*?(Seq|Index|Bitmap)[A-Za-z ]*Scan/) ?? []
  expect(skipping).toContain('Index Only Scan')
})

test('the cursor of another order is refused', () => {
  expect(() => afterOf({ at: ['x', 'a'], left: null }, [], symbols)).toThrow(
    'the cursor belongs to another order',
  )
})

test('a sort parameter that names no plain column is a bad sort', () => {
  for (const symbol of ['nothing', 'words', 'tags.loc'])
    expect(() => orderOf([{ symbol, descending: false, by: 'parameter' }], symbols)).toThrow(
      expect.objectContaining({ code: 'INVALID_SORT_IDENTIFIER' }),
    )
})
