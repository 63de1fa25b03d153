import { testDatabase } from '@overlay/launcher/testing'
import pg from 'pg'
import { expect, test } from 'vitest'

test('a test database has the migrated schemas of its services, and is its own', async () => {
  await using first = await testDatabase('policy', 'pki')
  await using second = await testDatabase('pki', 'policy')
  const client = new pg.Client({ connectionString: first.urlOf('policy') })
  await client.connect()
  const { rows } = await client.query('select number::int from policy.stream')
  await expect(client.query('select from pki.stream')).rejects.toThrow('permission denied')
  await expect(client.query('create table policy.mine ()')).rejects.toThrow('permission denied')
  await client.end()
  expect(rows).toEqual([{ number: 0 }])
  expect(first.ownerUrl).not.toBe(second.ownerUrl)
})
