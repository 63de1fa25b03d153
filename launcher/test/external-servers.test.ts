import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '@overlay/store/postgres'
import { MissingRights, withClient } from '@overlay/store/postgres/migrate'
import { expect, onTestFinished, test } from 'vitest'
import {
  databaseText,
  explainDatabase,
  explainOwnDatabase,
  onDatabase,
  refuseNewDatabase,
  untilDatabase,
} from '../src/servers/external-servers.js'
import { testPostgres } from '../testing/test-postgres.js'

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

test('a home whose last start used DATABASE_URL is not started without it', async () => {
  const home = await mkdtemp(join(tmpdir(), 'overlay-home-'))
  const url = 'postgres://overlay:password@db.example.org/overlay'
  await refuseNewDatabase(home, undefined)
  await writeFile(join(home, 'status.json'), JSON.stringify({ database: databaseText(url) }))
  await expect(refuseNewDatabase(home, undefined)).rejects.toThrow(
    'DATABASE_URL is not set, and the last start used db.example.org/overlay: set it',
  )
  await refuseNewDatabase(home, url)
  await rm(home, { recursive: true })
})

test.each([
  ['status.json', JSON.stringify({ database: databaseText(undefined) })],
  ['ca.pem', ''],
])('a home that was used, as %s shows, is not started without its data', async (name, text) => {
  const home = await mkdtemp(join(tmpdir(), 'overlay-home-'))
  onTestFinished(() => rm(home, { recursive: true }))
  const data = join(home, 'postgres/data')
  await mkdir(data, { recursive: true })
  await refuseNewDatabase(home, undefined) // a first start may have failed
  await writeFile(join(home, name), text)
  await expect(refuseNewDatabase(home, undefined)).rejects.toThrow(
    `there is no database in ${join(home, 'postgres')}, and this home has had one: mount the directory`,
  )
  await writeFile(join(data, 'PG_VERSION'), '18')
  await refuseNewDatabase(home, undefined)
})

test('a start waits for its own Postgres, but not for what must be repaired', async () => {
  const failures = [
    Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
    new Error('timeout expired'),
    Object.assign(new Error('canceling statement'), { code: '57014' }),
  ]
  const lines: string[] = []
  const work = async (): Promise<string> => {
    const failure = failures.shift()
    if (failure) throw failure
    return 'prepared'
  }
  expect(
    await untilDatabase(
      (line) => lines.push(line),
      () => explainOwnDatabase(work),
    ),
  ).toBe('prepared')
  expect(lines).toEqual([
    'waiting for the database: Postgres of OVERLAY_HOME does not answer (connect ECONNREFUSED)',
    'waiting for the database: Postgres of OVERLAY_HOME does not answer (timeout expired)',
    'waiting for the database: Postgres of OVERLAY_HOME does not answer (canceling statement)',
  ])
  for (const error of [
    Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', path: '/keys/tls.key' }),
    Object.assign(new Error('password authentication failed'), { code: '28P01' }),
    Object.assign(new Error('no space left on device'), { code: '53100' }),
    new Error('key x: the key secret is not the one that it was stored with'),
  ])
    await expect(
      explainOwnDatabase(async () => {
        throw error
      }),
    ).rejects.toBe(error)
})

test('a start does not wait for its own Postgres while it refuses a role', async () => {
  const url = new URL(process.env.OVERLAY_TEST_POSTGRES_URL ?? '')
  url.username = 'missing_role'
  await using database = openDatabase(url.href, 'identity')
  const start = explainOwnDatabase(() => database.transaction(undefined, async () => 1))
  await expect(start).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    cause: { code: expect.stringMatching(/^28/) },
  })
})

test('a start waits for a database that is away, and says so once', async () => {
  await using postgres = await testPostgres()
  await postgres.stop()
  const lines: string[] = []
  let attempts = 0
  const connecting = untilDatabase(
    (line) => lines.push(line),
    async () => {
      attempts++
      return explainDatabase(postgres.url, () => withClient(postgres.url, async () => 'connected'))
    },
  )
  await expect.poll(() => attempts).toBeGreaterThan(2)
  await postgres.start()
  expect(await connecting).toBe('connected')
  const refused = lines.filter((line) => line.includes('connection refused: start the server'))
  expect(refused).toHaveLength(1)
})

test('a start does not wait for a database whose setting is wrong', async () => {
  const url = new URL(process.env.OVERLAY_TEST_POSTGRES_URL ?? '')
  url.pathname = '/none'
  const connect = () => explainDatabase(url.href, () => withClient(url.href, async () => 'connected'))
  const print = (line: string) => expect.unreachable(line)
  await expect(untilDatabase(print, connect)).rejects.toThrow('there is no database none')
})
