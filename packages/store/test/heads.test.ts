import { testDatabase } from '@overlay/launcher/testing'
import { expect, test } from 'vitest'
import { headsReader } from '../src/change-log/heads.js'
import { openDatabase } from '../src/postgres/database.js'

test('readers of different schemas share connections', async () => {
  await using database = await testDatabase('identity')
  await using db = openDatabase(database.urlOf('identity'), 'identity')
  const one = headsReader(db, ['identity'], 30_000)
  const other = headsReader(db, ['identity', 'identity'], 30_000)
  const { identity } = await one()
  expect(identity).toMatchObject({ number: expect.any(Number) })
  for (let n = 0; n < 3; n++) expect(await other()).toEqual({ identity })
})
