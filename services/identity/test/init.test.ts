import { testDatabase } from '@overlay/launcher/testing'
import pino from 'pino'
import { expect, test } from 'vitest'
import { initIdentity } from '../src/init.js'
import { hashing } from './identity.js'

const log = pino({ enabled: false })

test('concurrent calls create one first admin; a random password is returned once', async () => {
  await using database = await testDatabase('identity')
  const options = { databaseUrl: database.urlOf('identity'), username: 'first', hashing, log }
  const results = await Promise.all([initIdentity(options), initIdentity(options)])
  const created = results.filter(({ created }) => created)
  expect(created).toHaveLength(1)
  expect(created[0]?.password).toMatch(/^[\w-]{24}$/)
  expect(await initIdentity({ ...options, username: 'second', password: 'ignored-one' })).toEqual({
    created: false,
    username: 'first',
  })
})

test('the password of the caller is not returned', async () => {
  await using database = await testDatabase('identity')
  const account = { username: 'admin', password: 'admin-secret' }
  const result = await initIdentity({ databaseUrl: database.urlOf('identity'), ...account, hashing, log })
  expect(result).toEqual({ created: true, username: 'admin' })
})

test.each([
  ['a short name', { username: 'adm' }],
  ['a short password', { username: 'admin', password: 'four' }],
  ['a short display name', { username: 'admin', name: 'abc' }],
])('%s is refused before anything is asked', async (_what, wrong) => {
  await expect(initIdentity({ databaseUrl: 'postgres://nowhere', hashing, log, ...wrong })).rejects.toThrow(
    /default admin/,
  )
})
