import { ctrlType, headerKey } from '@overlay/channel'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { type FakeRouter, startTerminators } from './router-terminators.js'

const empty = { encode: () => ({ finish: () => Buffer.alloc(0) }) }

const ask = async (router: FakeRouter, type: number) =>
  (await router.ask(type, empty, undefined)).map(({ headers }) => headers?.get(headerKey.resultSuccess)?.[0])

test('a router that is quiesced takes its terminators out of use, and later back as they were', async () => {
  await using started = await startTerminators()
  const { db, r1 } = started
  await db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address, precedence)
    select case i when 0 then 'failed' when 1 then 'required' else 't' || i end, 'wiki', 'r1', 'edge', 'a',
           case i when 0 then 'failed' when 1 then 'required' else 'default' end
      from generate_series(0, 1100) as i`)
  await db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address) values ('other', 'wiki', 'r2', 'edge', 'a')`)
  const counts = async () => {
    const { rows } = await db.query<{ precedence: string; count: number }>(sql`
      select precedence, count(*) from terminator where router_id = 'r1' group by precedence order by precedence`)
    return Object.fromEntries(rows.map(({ precedence, count }) => [precedence, count]))
  }
  for (let i = 0; i < 2; i++) {
    expect(await ask(r1, ctrlType.quiesceRouter)).toEqual([1])
    expect(await counts()).toEqual({ failed: 1101 })
  }
  expect((await db.query(sql`select from terminator where precedence = 'default'`)).rowCount).toBe(1)
  for (let i = 0; i < 2; i++) {
    expect(await ask(r1, ctrlType.dequiesceRouter)).toEqual([1])
    expect(await counts()).toEqual({ default: 1099, failed: 1, required: 1 })
  }
})

test('a router that repeats the request leaves connections to the database to others', async () => {
  await using started = await startTerminators()
  const { db, r1 } = started
  await db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address, precedence)
    select 't' || i, 'wiki', 'r1', 'edge', 'a', 'default' from generate_series(1, 600) as i`)
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: locked, resolve: hold } = Promise.withResolvers<void>()
  const holding = db.transaction(undefined, async (tx) => {
    await tx.query(sql`select from terminator for update`)
    hold()
    await released
  })
  await locked
  const asked = Array.from({ length: 30 }, (_, i) =>
    ask(r1, i % 2 ? ctrlType.dequiesceRouter : ctrlType.quiesceRouter),
  )
  await db.transaction(undefined, (tx) => tx.query(sql`select 1`)) // and so could another router
  release()
  await holding
  expect(await Promise.all(asked)).toEqual(asked.map(() => [1]))
})

test('a router that leaves the network is deleted', async () => {
  await using started = await startTerminators()
  expect(await ask(started.r1, ctrlType.decommissionRouter)).toEqual([1])
  expect(started.deleted).toEqual(['r1'])
})
