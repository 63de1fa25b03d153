import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { testDatabase, withClient } from '@overlay/launcher/testing'
import { expect, onTestFinished, test } from 'vitest'
import type { Admin } from '../admin.js'
import { type Network, startNetwork } from '../network.js'

const root = join(import.meta.dirname, '../..')

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}

/** Creates entities continuously, and writes into two schemas in one transaction, which no service does. */
function startLoad(admin: Admin, { databaseUrl }: Network) {
  let isRunning = true
  let count = 0
  const loops: { rounds: number }[] = []
  const again = async (work: (n: number) => Promise<unknown>): Promise<void> => {
    const loop = { rounds: 0 }
    loops.push(loop)
    while (isRunning) {
      await work(++count)
      loop.rounds++
    }
  }
  const running = [
    again((n) => admin.create('services', { name: `s-${n}`, encryptionRequired: true })),
    again((n) => admin.create('identities', { name: `i-${n}`, type: 'Device', isAdmin: false })),
    again((n) => admin.create('edge-routers', { name: `r-${n}`, isTunnelerEnabled: true })),
    withClient(databaseUrl, (client) =>
      again((n) =>
        client.query(`
          begin;
          insert into pki.ended_enrollment values ('both-${n}', 'nobody');
          insert into sessions.known_service values ('both-${n}', 'both');
          commit`),
      ),
    ),
  ]
  return {
    /** Rows of each kind, at least. */
    count: () => Math.min(...loops.map(({ rounds }) => rounds)),
    async stop() {
      isRunning = false
      await Promise.all(running)
    },
  }
}

const run = (command: string, args: readonly string[], home: string, databaseUrl: string) =>
  promisify(execFile)(process.execPath, [`launcher/dist/${command}.js`, ...args], {
    cwd: root,
    env: { ...process.env, OVERLAY_HOME: home, DATABASE_URL: databaseUrl },
  })

const restore = (directory: string, home: string, databaseUrl: string) =>
  run('restore', [directory], home, databaseUrl)

/** The rows that `startLoad` writes into two schemas in one transaction. */
const bothIn = (databaseUrl: string) =>
  withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ pki: string; sessions: string }>(`
      select (select count(*) from pki.ended_enrollment where id like 'both-%') as pki,
             (select count(*) from sessions.known_service where id like 'both-%') as sessions`)
    return rows[0]
  })

test('snapshots and backups during writes are of one point in time, and a network continues from them', async () => {
  const home = await newDirectory()
  const [snapshots, restored] = [join(home, 'snapshots'), await newDirectory()]
  const [backups, restoredBackup] = [await newDirectory(), await newDirectory()]
  await using fresh = await testDatabase()
  await using second = await testDatabase()
  const before = await (async () => {
    await using network = await startNetwork({ identities: 2, env: { OVERLAY_HOME: home } })
    const admin = await network.admin()
    expect((await admin.call('POST', '/current-identity/mfa')).status).toBe(201)
    const load = startLoad(admin, network)
    await expect.poll(load.count).toBeGreaterThan(10)
    const answers = await Promise.all([
      admin.call('POST', '/database/snapshot'),
      admin.call('POST', '/database/snapshot'),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 429])
    await writeFile(join(home, 'admin-password'), 'generated\n', { mode: 0o600 })
    const backup = await run('backup', [backups, '--keep', '1'], home, network.databaseUrl)
    await load.stop()
    const [backupName = ''] = await readdir(backups)
    expect(backup.stdout).toContain(`npm run restore -- ${join(backups, backupName)}\n`)
    const names = await readdir(snapshots)
    expect(names).toHaveLength(1)
    return { directory: join(snapshots, names[0] ?? ''), service: await admin.create('services', late) }
  })()

  const [backup = ''] = (await readdir(backups)).map((name) => join(backups, name))
  expect((await stat(backup)).mode & 0o777).toBe(0o700)
  expect((await restore(backup, restoredBackup, second.ownerUrl)).stdout).toContain('restored')
  const inBackup = await bothIn(second.ownerUrl)
  expect(Number(inBackup?.pki)).toBeGreaterThan(0)
  expect(inBackup?.sessions).toBe(inBackup?.pki)
  const secretsOf = async (directory: string) =>
    JSON.parse(await readFile(join(directory, 'secrets.json'), 'utf8'))
  expect((await secretsOf(restoredBackup)).keySecrets).toEqual((await secretsOf(home)).keySecrets)
  expect((await secretsOf(restoredBackup)).id).not.toBe((await secretsOf(home)).id)
  expect(await readFile(join(restoredBackup, 'admin-password'), 'utf8')).toBe('generated\n')

  await expect(restore(before.directory, restored, fresh.ownerUrl)).rejects.toThrow('put it there first')
  await expect(restore(backup, restored, fresh.ownerUrl)).rejects.toThrow(
    'set OVERLAY_HOME to a new directory',
  )
  const { keySecrets, ...rest } = JSON.parse(await readFile(join(home, 'secrets.json'), 'utf8'))
  const other = { ...rest, keySecrets: { ...keySecrets, identity: keySecrets.pki } } // does not open second factors
  await writeFile(join(restored, 'secrets.json'), JSON.stringify(other))
  await expect(restore(before.directory, restored, fresh.ownerUrl)).rejects.toThrow('put it there first')
  await copyFile(join(home, 'secrets.json'), join(restored, 'secrets.json'))
  expect((await restore(before.directory, restored, fresh.ownerUrl)).stdout).toContain('restored')
  await expect(restore(before.directory, restored, fresh.ownerUrl)).rejects.toThrow('is in use')

  const inSnapshot = await bothIn(fresh.ownerUrl)
  expect(Number(inSnapshot?.pki)).toBeGreaterThan(0)
  expect(inSnapshot?.sessions).toBe(inSnapshot?.pki)
  await withClient(fresh.ownerUrl, async (client) => {
    for (const schema of ['identity', 'pki', 'policy', 'sessions']) {
      const audited = await client.query(`
        select number::int as head, (select count(number)::int from ${schema}.audit) as audited,
               (select max(number)::int from ${schema}.audit) as last from ${schema}.stream`)
      const { head, audited: numbers, last } = audited.rows[0]
      expect(last).toBeLessThanOrEqual(head)
      if (schema !== 'identity') expect(numbers).toBe(head) // credentials have numbers, and are not audited
    }
    await client.query(
      `delete from pki.ended_enrollment; delete from sessions.known_service where name = 'both'`,
    )
  })

  await using network = await startNetwork({ env: { OVERLAY_HOME: restored, DATABASE_URL: fresh.ownerUrl } })
  const admin = await network.admin()
  expect((await admin.call('GET', `/services/${before.service}`)).status).toBe(404)
  expect((await admin.request<object[]>('GET', '/edge-routers')).length).toBeGreaterThan(0)
  const alice = await admin.enroll({ name: 'alice' })
  expect(await alice.services()).toEqual([])
  expect((await admin.call('POST', '/database/check-data-integrity')).status).toBe(202)
  const results = () => admin.request<{ endTime: string | null }>('GET', '/database/data-integrity-results')
  await expect.poll(async () => (await results()).endTime, { timeout: 60_000 }).not.toBe(null)
  expect(await results()).toMatchObject({ error: null, results: null })
})

const late = { name: 'after the snapshot', encryptionRequired: true }
