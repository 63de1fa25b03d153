import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  busPrograms,
  type TlsBus,
  type TlsPostgres,
  tlsBus,
  tlsPostgres,
  withClient,
} from '@overlay/launcher/testing'
import { expect, onTestFinished, test } from 'vitest'
import { type Network, startNetwork } from '../network.js'

/** Enough to end connections within requests. */
const TERMINATIONS = 4

const root = join(import.meta.dirname, '../..')

interface Servers {
  readonly postgres: TlsPostgres
  readonly bus: TlsBus
}

const environment = ({ postgres, bus }: Servers) => ({
  DATABASE_URL: postgres.ownerUrl,
  OVERLAY_DATABASE_TLS: postgres.directory,
  NATS_URL: bus.url,
  OVERLAY_NATS_TLS: bus.directory,
})

/** Creates, logs in and reads through alternating gateways until it is stopped. Each failed request is an error. */
async function startRequests(network: Network) {
  const [first = '', second = ''] = network.gateways
  const admin = await network.admin(first, second)
  let running = true
  let count = 0
  const requests = (async () => {
    for (; running; count++) {
      const id = await admin.create('services', { name: `s-${count}`, encryptionRequired: true })
      await admin.request('GET', `/services/${id}`) // through the other gateway
      await admin.request('GET', '/services?limit=1')
      using _other = await network.admin(count % 2 === 0 ? first : second)
    }
  })()
  requests.catch(() => undefined) // reported by stop
  const reach = (least: number) => Promise.race([requests, expect.poll(() => count).toBeGreaterThan(least)])
  return {
    /** Resolves after further requests. */
    more: () => reach(count + 2),
    async stop() {
      running = false
      await requests
    },
  }
}

const asAdmin = <T>(postgres: TlsPostgres, sql: string): Promise<T[]> =>
  withClient(
    `${postgres.adminUrl}?sslrootcert=${postgres.directory}/ca.crt`,
    async (client) => (await client.query(sql)).rows,
  )

/** Serial numbers of the certificates of all connections of the product. */
async function serialsAt(postgres: TlsPostgres): Promise<readonly string[]> {
  const rows = await asAdmin<{ serial: string }>(
    postgres,
    `select distinct s.client_serial::text as serial
       from pg_stat_ssl s join pg_stat_activity a using (pid) where a.usename like 'overlay_%'`,
  )
  return rows.map(({ serial }) => serial)
}

const terminate = (postgres: TlsPostgres) =>
  asAdmin(postgres, "select pg_terminate_backend(pid) from pg_stat_activity where usename like 'overlay_%'")

test.each(busPrograms)(
  'on a Postgres and a %s that require certificates, no request fails while all are renewed',
  async (program) => {
    await using postgres = await tlsPostgres()
    await using bus = await tlsBus(program)
    const env = environment({ postgres, bus })
    await using network = await startNetwork({ gateways: 2, identities: 2, env })
    const status = async () => {
      const { stdout } = await run(network.home, env)('status', '--json')
      const { state, database, bus } = JSON.parse(stdout)
      return { state, database, bus }
    }
    const before = await serialsAt(postgres)
    expect(before).toHaveLength(1)

    const requests = await startRequests(network)
    await requests.more()
    await postgres.renew()
    await bus.renew()
    await requests.more()
    for (let n = 0; n < TERMINATIONS; n++) {
      await terminate(postgres)
      await requests.more()
    }
    await bus.restart()
    await requests.more()
    await requests.stop()
    const after = await serialsAt(postgres)
    expect(after).toHaveLength(1)
    expect(after).not.toEqual(before)
    await expect.poll(status).toEqual({ state: 'healthy', database: 'ok', bus: 'ok' })
    if (program === 'built-in') await useCommands(network, { postgres, bus })
  },
)

const run =
  (home: string, env: NodeJS.ProcessEnv) =>
  (command: string, ...args: readonly string[]) =>
    promisify(execFile)(process.execPath, [`launcher/dist/${command}.js`, ...args], {
      cwd: root,
      env: { ...process.env, OVERLAY_HOME: home, ...env },
    })

async function useCommands(network: Network, servers: Servers): Promise<void> {
  const env = environment(servers)
  const command = run(network.home, env)
  expect((await command('audit', '--kind', 'services')).stdout).toContain('created  services')
  expect((await command('keys')).stdout).toContain('signing')
  expect((await command('admin-password')).stdout).toContain('administrator  admin')
  const [backups, home] = [await newDirectory(), await newDirectory()]
  await command('backup', backups)
  const [backup = ''] = await readdir(backups)
  const restore = run(home, { ...env, DATABASE_URL: servers.postgres.emptyUrl })
  expect((await restore('restore', join(backups, backup))).stdout).toContain('restored')
}

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}
