import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Product, readLauncherSettings, startProduct } from '@overlay/launcher/product'
import { freePort, withClient } from '@overlay/launcher/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'

// Attacks by another user of the machine on a product with its own Postgres and bus.

let home: string
let product: Product
const lines: string[] = []
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'overlay test '))
  const settings = readLauncherSettings({
    OVERLAY_HOME: home,
    OVERLAY_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_CTRL_ADDRESS: `localhost:${await freePort()}`,
  })
  const scale = { gateway: 1, identity: 2, pki: 1, policy: 1, sessions: 1 }
  product = await startProduct(settings, { separate: scale }, (line) => lines.push(line))
})
afterAll(async () => {
  await product?.stop()
  await rm(home, { recursive: true })
})

const isRoot = process.getuid?.() === 0
const secrets = async () => JSON.parse(await readFile(join(home, 'secrets.json'), 'utf8'))
const pids = () => [...product.processes.values()].map((supervised) => supervised.pid())

test('no service listens at a port that another user could take: their sockets are in a private directory', async () => {
  const sockets = await socketsBelow(join(home, 'run'))
  expect(sockets.map((path) => path.split('/').at(-1)).sort()).toEqual([
    '.s.PGSQL.5432',
    'identity-1.sock',
    'identity-2.sock',
    'pki.sock',
    'policy.sock',
    'sessions.sock',
  ])
  const inodes = await listeningInodes()
  const listening = await Promise.all(
    [...product.processes].map(async ([name, supervised]) => [
      name,
      await countListening(supervised.pid(), inodes),
    ]),
  )
  // health and metrics, which have no secrets; for the gateway its clients, for sessions routers
  expect(Object.fromEntries(listening)).toEqual({
    gateway: 2,
    'identity-1': 1,
    'identity-2': 1,
    pki: 1,
    policy: 1,
    sessions: 2,
  })
  if (!isRoot) return
  for (const path of sockets) expect(await asOtherUser(CONNECT, path), path).toBe('EACCES')
  for (const path of sockets)
    expect(await asOtherUser(LISTEN, path.replace(/[^/]+$/, 'x.sock')), path).toBe('EACCES')
})

test('the bus sends nothing to a client without TLS and a certificate', async () => {
  const port = /bus at port (\d+)/.exec(lines.join('\n'))?.[1] ?? ''
  const answer = await asOtherUser(SUBSCRIBE, port)
  expect(answer).toMatch(/^INFO .*"tls_required":true/)
  expect(answer).not.toMatch(/MSG|PONG/)
})

test('no command line has a secret', async () => {
  const { keySecrets, postgresPassword, rolePasswords } = await secrets()
  const all = [postgresPassword, ...Object.values(keySecrets), ...Object.values(rolePasswords)]
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const line = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')
    for (const secret of all) expect(line).not.toContain(secret)
  }
})

test('each service with keys has its own key secret, others have none', async () => {
  const { keySecrets } = await secrets()
  for (const [name, supervised] of product.processes) {
    const environment = await readFile(`/proc/${supervised.pid()}/environ`, 'utf8')
    const secretsInEnvironment = Object.entries(keySecrets).filter(([, secret]) =>
      environment.includes(String(secret)),
    )
    const component = name.replace(/-\d$/, '')
    expect(secretsInEnvironment.map(([service]) => service)).toEqual(
      component in keySecrets ? [component] : [],
    )
  }
})

test.skipIf(!isRoot)(
  'started by root, no process keeps its rights, and the database has an account of its own',
  async () => {
    const children = await readFile(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
    const users = new Map<string, string>()
    for (const pid of children.trim().split(' ')) {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
      const status = await readFile(`/proc/${pid}/status`, 'utf8')
      const ids = /^Uid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)$/m.exec(status)?.slice(1) ?? []
      if (command.includes(home) || pids().includes(Number(pid))) {
        expect(new Set(ids).size, command).toBe(1)
        expect(/^CapEff:\s+0+$/m.test(status), command).toBe(true)
        expect(/^Groups:\s*$/m.test(status), command).toBe(true)
        users.set(command, ids[0] ?? '')
      }
    }
    const [database, rest] = [true, false].map(
      (isDatabase) =>
        new Set(
          [...users]
            .filter(([command]) => command.includes('/postgres\0') === isDatabase)
            .map(([, id]) => id),
        ),
    )
    expect([...(database ?? [])]).toEqual(['61001'])
    expect([...(rest ?? [])]).toEqual(['61000'])
  },
)

test.skipIf(!isRoot)(
  'the account of the database owns nothing in the home but the database and its socket',
  async () => {
    const owned: string[] = []
    for (const entry of await readdir(home, { recursive: true }))
      if (!entry.startsWith('postgres/') && (await stat(join(home, entry))).uid === 61_001) owned.push(entry)
    expect(owned.sort()).toEqual([
      'postgres',
      'run/postgres',
      'run/postgres/.s.PGSQL.5432',
      'run/postgres/.s.PGSQL.5432.lock',
    ])
  },
)

test('a service cannot delete rows of its audit', async () => {
  const { rolePasswords } = await secrets()
  const url = `postgres://overlay_pki:${rolePasswords.pki}@localhost/overlay?host=${encodeURIComponent(join(home, 'run/postgres'))}`
  await withClient(url, async (client) => {
    const { rows } = await client.query('select count(*)::int as count from audit')
    expect(rows[0].count).toBeGreaterThan(0)
    await expect(client.query('delete from audit')).rejects.toThrow('permission denied')
  })
})

const CONNECT = `require('net').connect(process.argv[1], () => console.log('connected')).on('error', (e) => console.log(e.code))`
const LISTEN = `require('net').createServer().on('error', (e) => console.log(e.code)).listen(process.argv[1], () => console.log('ours'))`
const SUBSCRIBE = `
  const socket = require('net').connect(process.argv[1], '127.0.0.1', () =>
    socket.write('CONNECT {"verbose":false}\\r\\nSUB > 1\\r\\nPUB overlay.policy.head 4\\r\\nnull\\r\\nPING\\r\\n'))
  socket.pipe(process.stdout)`

/** The output of a script that runs as another user, if this process may do that. */
async function asOtherUser(script: string, argument: string): Promise<string> {
  const child = spawn(process.execPath, ['-e', script, argument], {
    ...(isRoot && { uid: 65_534, gid: 65_534 }),
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return (await text(child.stdout)).trim()
}

async function socketsBelow(directory: string): Promise<string[]> {
  const sockets: string[] = []
  for (const entry of await readdir(directory, { recursive: true })) {
    const path = join(directory, entry)
    if ((await stat(path)).isSocket()) sockets.push(path)
  }
  return sockets
}

/** The inodes of all listening TCP sockets of this machine. */
async function listeningInodes(): Promise<ReadonlySet<string>> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8')))
  const rows = tables.flatMap((table) => table.trim().split('\n').slice(1))
  const columns = rows.map((row) => row.trim().split(/\s+/))
  return new Set(columns.filter(([, , , state]) => state === '0A').map((row) => row[9] ?? ''))
}

async function countListening(pid: number, inodes: ReadonlySet<string>): Promise<number> {
  const links = await Promise.all(
    (await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')),
  )
  return links.filter((link) => inodes.has(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? '')).length
}
