import { tlsPostgres, withClient } from '@overlay/launcher/testing'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { openDatabase } from '../src/postgres/database.js'
import { withTlsDirectory } from '../src/postgres/migrate.js'

test('renewed files are used by new connections, and no statement fails meanwhile', async () => {
  await using postgres = await tlsPostgres()
  const { adminUrl, ownerUrl, directory } = postgres
  await using db = openDatabase(withTlsDirectory(ownerUrl, directory), 'public', { max: 2 })
  const serialOf = () =>
    db.transaction(undefined, async (tx) => {
      const { rows } = await tx.query<{ serial: string }>(
        sql`select client_serial::text as serial from pg_stat_ssl where pid = pg_backend_pid()`,
      )
      return rows[0]?.serial
    })
  const first = await serialOf()
  await postgres.renew()
  expect(await serialOf()).toBe(first) // by the connection from before
  await withClient(withTlsDirectory(adminUrl, directory), (client) =>
    client.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'overlay'"),
  )
  const renewed = await serialOf()
  expect(renewed).toMatch(/^\d+$/)
  expect(renewed).not.toBe(first)
})
