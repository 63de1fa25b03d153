import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, testPostgres } from '@overlay/launcher/testing'
import { withClient } from '@overlay/store/postgres/migrate'
import { expect, onTestFinished, test } from 'vitest'
import { logInAsAdmin } from '../admin.js'
import { launch, untilOutput } from '../launch.js'

/** A server that requires passwords, with an empty database of the product. */
async function emptyDatabase(): Promise<string> {
  const postgres = await testPostgres({ password: 'sesame' })
  onTestFinished(() => postgres[Symbol.asyncDispose]())
  await withClient(postgres.url, (client) => client.query('create database overlay'))
  return Object.assign(new URL(postgres.url), { pathname: '/overlay' }).href
}

async function startWith(databaseUrl: string) {
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  const address = `localhost:${await freePort()}`
  const launcher = launch(home, {
    DATABASE_URL: databaseUrl,
    OVERLAY_ADDRESS: address,
    OVERLAY_CTRL_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_METRICS_ADDRESS: `127.0.0.1:${await freePort()}`,
  })
  onTestFinished(async () => {
    await stop(launcher)
    await rm(home, { recursive: true })
  })
  return { home, address, launcher, output: untilOutput(launcher, /ziti edge login|cannot start/) }
}

async function stop(launcher: ChildProcess): Promise<void> {
  if (launcher.exitCode !== null) return
  launcher.kill('SIGINT')
  await once(launcher, 'exit')
}

const logIn = async ({ home, address }: { readonly home: string; readonly address: string }) =>
  logInAsAdmin(
    { addresses: [address], caPem: await readFile(join(home, 'ca.pem'), 'utf8') },
    { username: 'admin', password: (await readFile(join(home, 'admin-password'), 'utf8')).trim() },
  )

const refused =
  'the database belongs to another installation, and nothing was changed: set OVERLAY_HOME to the directory of that installation, or DATABASE_URL to another database'
const refusal = new RegExp(`cannot start: ${refused}$`, 'm')

const run = (home: string, databaseUrl: string, command: string) =>
  spawnSync(process.execPath, [`launcher/dist/${command}.js`], {
    cwd: join(import.meta.dirname, '../..'),
    env: { ...process.env, OVERLAY_HOME: home, DATABASE_URL: databaseUrl },
    encoding: 'utf8',
  }).stderr

/** What a start changes first. */
const stateOf = (url: string) =>
  withClient(url, async (client) => {
    const passwords = `select rolname, rolpassword from pg_authid order by rolname`
    const comments = `select c.oid::regclass::text as name, obj_description(c.oid) as comment from pg_class c
      where c.relname = 'migration' order by 1`
    return [(await client.query(passwords)).rows, (await client.query(comments)).rows]
  })

test('a start or a command with another home is refused, and changes nothing in the database of a running product', async () => {
  const url = await emptyDatabase()
  const product = await startWith(url)
  await product.output
  const before = await stateOf(url)
  const stranger = await startWith(url)
  expect(await stranger.output).toMatch(refusal)
  expect(run(stranger.home, url, 'admin-password')).toBe(`password not changed: ${refused}\n`)
  expect(run(stranger.home, url, 'keys')).toBe(`keys not changed: ${refused}\n`)
  expect(await stateOf(url)).toEqual(before)

  // new connections of the product are admitted
  await withClient(url, (client) =>
    client.query('select pg_terminate_backend(pid) from pg_stat_activity where usename <> current_user'),
  )
  const admin = await logIn(product)
  await admin.create('services', { name: 'kept', encryptionRequired: true })
})

test('of two homes that start at once with an empty database, one gets it', async () => {
  const url = await emptyDatabase()
  const products = await Promise.all([startWith(url), startWith(url)])
  const outputs = await Promise.all(products.map(({ output }) => output))
  const winner = outputs.findIndex((output) => output.includes('ziti edge login'))
  expect(outputs[1 - winner]).toMatch(refusal)
  const [product] = products.slice(winner)
  if (product) await (await logIn(product)).create('services', { name: 'kept', encryptionRequired: true })
})
