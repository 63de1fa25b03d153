import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, testPostgres } from '@overlay/launcher/testing'
import { expect, onTestFinished, test } from 'vitest'
import { logInAsAdmin } from '../admin.js'
import { isAlive } from '../is-alive.js'
import { launch, untilOutput } from '../launch.js'

const root = join(import.meta.dirname, '../..')

test('a first start creates all state, a second one uses it, and no process outlives its launcher', async () => {
  const home = await mkdtemp(join(tmpdir(), 'overlay test '))
  onTestFinished(() => rm(home, { recursive: true }))
  const address = `localhost:${await freePort()}`
  const metricsAddress = `127.0.0.1:${await freePort()}`
  const addresses = {
    OVERLAY_ADDRESS: address,
    OVERLAY_CTRL_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_METRICS_ADDRESS: metricsAddress,
  }
  const status = () => {
    const env = { ...process.env, OVERLAY_HOME: home }
    const { status, stdout } = spawnSync(process.execPath, ['launcher/dist/status.js', '--json'], {
      cwd: root,
      env,
    })
    return { exit: status, ...JSON.parse(stdout.toString()) }
  }
  expect(status()).toMatchObject({ exit: 1, state: 'none' })

  const first = launched(home, addresses)
  const output = await untilOutput(first, /ziti edge login/)
  const passwordFile = join(home, 'admin-password')
  const password = (await readFile(passwordFile, 'utf8')).trim()
  expect(output).toContain(
    `ziti edge login ${address} -u admin -p "$(cat '${passwordFile}')" --ca '${join(home, 'ca.pem')}'`,
  )
  expect(output).not.toContain(password) // the output is no terminal
  expect((await stat(passwordFile)).mode & 0o777).toBe(0o600)
  expect(await readFile(join(home, 'postgres', 'postgres.log'), 'utf8')).not.toMatch(/(ERROR|FATAL|WARNING):/)

  const server = { addresses: [address], caPem: await readFile(join(home, 'ca.pem'), 'utf8') }
  const credentials = { username: 'admin', password }
  const admin = await logInAsAdmin(server, credentials)
  const id = await admin.create('services', { name: 'kept', encryptionRequired: true })

  const [, version, revision] = /overlay (\S+) \(([\da-f]{12}(?:-dirty)?|tree-\d+)\)/.exec(output) ?? []
  expect(await admin.request('GET', '/version')).toMatchObject({
    version: 'v1.1.13',
    revision,
    runtimeVersion: `overlay/${version} node/${process.versions.node}`,
  })
  const start = { version, revision, node: process.versions.node, msg: 'starting' }
  const [line = ''] = (await readFile(join(home, 'overlay.log'), 'utf8')).split('\n')
  expect(JSON.parse(line)).toMatchObject({ service: 'overlay', ...start })

  const second = launched(home, {
    OVERLAY_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_CTRL_ADDRESS: `localhost:${await freePort()}`,
  })
  expect(await untilOutput(second, /cannot start/)).toContain(
    `already running at https://${address}: process ${first.pid} uses OVERLAY_HOME ${home};`,
  )

  const ready = { restarts: 0, ready: true, problems: [] }
  expect(status()).toMatchObject({
    exit: 0,
    state: 'healthy',
    start: { version, revision, launcher: first.pid, address, metricsAddress },
    processes: [{ name: 'overlay', ...ready }],
    database: 'ok',
    bus: 'ok',
    routersConnected: 0,
    certificates: [{ role: 'root' }, { role: 'signing' }, { role: 'server' }],
  })
  const metrics = await (await fetch(`http://${metricsAddress}/metrics`)).text()
  expect(metrics).toContain('\noverlay_process_up{process="overlay"} 1\n')

  const children = await childrenOf(first)
  expect(children.length).toBeGreaterThanOrEqual(2) // Postgres, all components, and nats-server if it is installed
  first.kill('SIGKILL')
  await expect.poll(() => children.filter(isAlive)).toEqual([])

  expect(status()).toMatchObject({ exit: 1, state: 'stopped', start: { version } })
  expect(status().start.stoppedAt).toBeUndefined()

  const third = launched(home, addresses)
  expect(await untilOutput(third, /ziti edge login/)).toContain(`in ${join(home, 'admin-password')}`)
  const again = await logInAsAdmin(server, credentials)
  expect(await again.request('GET', `/services/${id}`)).toMatchObject({ name: 'kept' })

  const reset = spawnSync(process.execPath, ['launcher/dist/admin-password.js'], {
    cwd: root,
    env: { ...process.env, OVERLAY_HOME: home },
  })
  const renewed = /^password +(\S+), also in/m.exec(reset.stdout.toString())?.[1] ?? ''
  expect(await readFile(join(home, 'admin-password'), 'utf8')).toBe(`${renewed}\n`)
  await expect.poll(async () => (await again.call('GET', '/services')).status, { timeout: 20_000 }).toBe(401)
  await expect(logInAsAdmin(server, credentials)).rejects.toThrow()
  await logInAsAdmin(server, { username: 'admin', password: renewed })

  const last = await childrenOf(third)
  third.kill('SIGINT')
  expect(await once(third, 'exit')).toEqual([0, null])
  expect(last.filter(isAlive)).toEqual([])
  expect(status()).toMatchObject({ exit: 1, state: 'stopped', start: { stoppedAt: expect.any(String) } })

  const caPem = await readFile(join(home, 'ca.pem'), 'utf8')
  await rename(join(home, 'postgres'), join(home, 'elsewhere'))
  await mkdir(join(home, 'postgres')) // where a volume is not mounted
  const refused = await untilOutput(launched(home, addresses), /cannot start|ziti edge login/)
  expect(refused).toContain('mount the directory, or restore a backup')
  expect(await readFile(join(home, 'ca.pem'), 'utf8')).toBe(caPem)
})

test('all wrong settings are reported together', async () => {
  const env = { OVERLAY_ADDRESS: 'nowhere', OVERLAY_LOG_LEVEL: 'loud', DATABASE_URL: 'mysql://host' }
  const output = await untilOutput(launched('/nonexistent', env), /cannot start/)
  for (const name of Object.keys(env)) expect(output).toContain(name)
})

test('a start waits for an external database that is away, and a signal ends the wait', async () => {
  await using postgres = await testPostgres({ password: 'sesame' })
  await postgres.stop()
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(home, { recursive: true }))
  const env = {
    DATABASE_URL: postgres.url,
    OVERLAY_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_CTRL_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_METRICS_ADDRESS: `127.0.0.1:${await freePort()}`,
  }
  const first = launched(home, env)
  await untilOutput(first, /waiting for the database: .*connection refused/)
  first.kill('SIGTERM')
  expect(await once(first, 'exit')).toEqual([130, null])

  const second = launched(home, env)
  await untilOutput(second, /waiting for the database/)
  const ready = untilOutput(second, /ziti edge login/)
  await postgres.start()
  await ready
  second.kill('SIGTERM')
  expect(await once(second, 'exit')).toEqual([0, null])
})

function launched(home: string, env: NodeJS.ProcessEnv): ChildProcess {
  const launcher = launch(home, env)
  onTestFinished(() => void launcher.kill('SIGKILL'))
  return launcher
}

const childrenOf = async ({ pid }: ChildProcess): Promise<number[]> => {
  const list = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return list.trim().split(' ').map(Number)
}
