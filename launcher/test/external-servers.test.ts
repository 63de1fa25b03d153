import { MissingRights } from '@overlay/platform/postgres/migrate'
import { expect, test } from 'vitest'
import { onDatabase } from '../src/external-servers.js'

test('missing rights leave SQL in the home, and a command with the address of the server', async () => {
  const written: [string, string][] = []
  const home = {
    path: (name: string) => `/home/of/product/${name}`,
    write: async (name: string, text: string) => void written.push([name, text]),
  }
  const url = new URL(process.env.OVERLAY_TEST_POSTGRES_URL ?? '')
  const work = async () => {
    throw new MissingRights('create role …', undefined)
  }
  await expect(onDatabase(url.href, home, work)).rejects.toThrow(
    `psql -h ${url.hostname} -p ${url.port} -U ADMINISTRATOR -d ${url.pathname.slice(1)} -f '/home/of/product/prepare-database.sql'`,
  )
  expect(written).toEqual([['prepare-database.sql', 'create role …']])
})
