import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
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
  let running = true
  let count = 0
  const again = async (work: (n: number) => Promise<unknown>): Promise<void> => {
    while (running) await work(++count)
  }
  const loops = [
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
    count: () => count,
    async stop() {
      running = false
      await Promise.all(loops)
    },
  }
}

/** Restores with the secrets of the installation that took the snapshot. */
const restore = (directory: string, home: string, databaseUrl: string) =>
  promisify(execFile)(process.execPath, ['launcher/dist/restore.js', directory], {
    cwd: root,
    env: { ...process.env, OVERLAY_HOME: home, DATABASE_URL: databaseUrl },
  })

test('a snapshot during writes is of one point in time, and a network continues from it', async () => {
  const home = await newDirectory()
  const [snapshots, restored] = [join(home, 'snapshots'), await newDirectory()]
  await using fresh = await testDatabase()
  const before = await (async () => {
    await using network = await startNetwork({ identities: 2, env: { OVERLAY_HOME: home } })
    const admin = await network.admin()
    expect((await admin.call('POST', '/current-identity/mfa')).status).toBe(201)
    const load = startLoad(admin, network)
    await expect.poll(load.count).toBeGreaterThan(100)
    const answers = await Promise.all([
      admin.call('POST', '/database/snapshot'),
      admin.call('POST', '/database/snapshot'),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 429])
    await load.stop()
    const names = await readdir(snapshots)
    expect(names).toHaveLength(1)
    return { directory: join(snapshots, names[0] ?? ''), service: await admin.create('services', late) }
  })()

  await expect(restore(before.directory, restored, fresh.ownerUrl)).rejects.toThrow('put it there first')
  const { keySecrets, ...rest } = JSON.parse(await readFile(join(home, 'secrets.json'), 'utf8'))
  const older = JSON.stringify({ ...rest, keySecret: keySecrets.pki }) // of an earlier version, without a secret of identity
  await writeFile(join(restored, 'secrets.json'), older)
  await expect(restore(before.directory, restored, fresh.ownerUrl)).rejects.toThrow('put it there first')
  await copyFile(join(home, 'secrets.json'), join(restored, 'secrets.json'))
  expect((await restore(before.directory, restored, fresh.ownerUrl)).stdout).toContain('restored')
  await expect(restore(before.directory, restored, fresh.ownerUrl)).rejects.toThrow('is in use')

  await withClient(fresh.ownerUrl, async (client) => {
    const both = await client.query<{ pki: string; sessions: string }>(`
      select (select count(*) from pki.ended_enrollment where id like 'both-%') as pki,
             (select count(*) from sessions.known_service where id like 'both-%') as sessions`)
    expect(Number(both.rows[0]?.pki)).toBeGreaterThan(0)
    expect(both.rows[0]?.sessions).toBe(both.rows[0]?.pki)
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
