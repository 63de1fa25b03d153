import { withClient } from '@overlay/launcher/testing'
import { expect, test } from 'vitest'
import { startDatabase } from './database.js'
import { openLosses } from './losses.js'

test('a failover loses what the standby has not received, and the next standby receives changes again', async () => {
  await using database = await startDatabase(undefined)
  const losses = openLosses()
  const url = new URL(database.primary().url)
  url.port = String(database.proxy.port)
  const query = (text: string) => withClient(url.href, async (client) => (await client.query(text)).rows)
  const insert = (text: string) => query(`insert into note values ('${text}')`)
  const kept = async () => (await query('select text from note')).map(({ text }) => text)
  await query('create table note (text text)')

  const former = database.primary()
  await database.failOver(() => insert('synchronous'))
  expect(database.primary()).not.toBe(former)
  expect(await kept()).toEqual(['synchronous'])

  await database.whole()
  const failed = database.failOverWithLoss(() => Promise.reject(new Error('no failover')), losses)
  await expect(failed).rejects.toThrow('no failover')
  expect([losses.watch()(), losses.count()]).toEqual([false, 0])
  await insert('before') // is received again
  await database.failOverWithLoss(() => insert('lost'), losses)
  expect(await kept()).toEqual(['synchronous', 'before'])
  expect(losses.count()).toBe(1)
  await database.whole()
})
