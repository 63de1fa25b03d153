import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once as onceEmitted } from 'node:events'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '@overlay/launcher/testing'
import type { Admin } from '../admin.js'
import { until } from '../traffic.js'
import { goCommand } from './go.js'
import { cache, once } from './once.js'

const run = promisify(execFile)
const source = join(import.meta.dirname, 'go-router')

/** The version in its `go.mod`. */
export const goRouterVersion = '1.7.2'

/** The unmodified `ziti` program, whose part is the router. It is built once, which takes minutes. */
export async function goRouterProgram(): Promise<string> {
  const hash = createHash('sha256')
  for (const file of ['go.mod', 'go.sum']) hash.update(await readFile(join(source, file)))
  const program = join(cache, `go-router-${goRouterVersion}-${hash.digest('hex').slice(0, 16)}`)
  await once(program, async () => {
    const output = `${program}.new`
    const build = [
      'build',
      '-ldflags=-s -w',
      '-buildvcs=false',
      '-o',
      output,
      'github.com/openziti/ziti/ziti',
    ]
    await run(await goCommand(), build, {
      cwd: source,
      env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly', GONOSUMDB: '*' }, // go.sum has all sums
      timeout: 1_200_000,
      maxBuffer: 16 * 1024 * 1024,
    })
    await rename(output, program)
  })
  return program
}

export interface GoRouter extends AsyncDisposable {
  readonly id: string
  /** What it has logged. */
  log(): string
  /** Starts it again after `stop`. */
  start(): Promise<void>
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

export interface GoRouterOptions {
  readonly program: string
  readonly admin: Admin
  /** `host:port` of the replicas that it connects to. */
  readonly controllers: readonly string[]
  /** For its files. */
  readonly folder: string
  readonly name: string
  readonly body?: object
  /** Of its tunneler. Absent: it has none. */
  readonly tunnel?: 'host'
}

/** Enrolls a real router, starts it, and waits until it is online. */
export async function startGoRouter(options: GoRouterOptions): Promise<GoRouter> {
  const { program, admin, folder, name, body } = options
  const own = join(folder, name)
  await mkdir(own, { recursive: true })
  const isTunnelerEnabled = options.tunnel !== undefined
  const id = await admin.create('edge-routers', { name, isTunnelerEnabled, ...body })
  const { enrollmentJwt } = await admin.request<{ enrollmentJwt: string }>('GET', `/edge-routers/${id}`)
  const [config, token] = [join(own, 'router.yml'), join(own, 'router.jwt')]
  await writeFile(config, await configOf(options, own))
  await writeFile(token, enrollmentJwt)
  await run(program, ['router', 'enroll', config, '--jwt', token], { timeout: 60_000 })

  const log: string[] = []
  let child: ChildProcess | undefined
  const router: GoRouter = {
    id,
    log: () => log.join(''),
    async start() {
      const started = spawn(program, ['router', 'run', config], { stdio: ['ignore', 'pipe', 'pipe'] })
      for (const output of [started.stdout, started.stderr])
        output.setEncoding('utf8').on('data', (text: string) => log.push(text))
      child = started
      await until(async () => {
        if (started.exitCode !== null) throw new Error(`the router ended: ${log.join('').slice(-3000)}`)
        const { isOnline } = await admin.request<{ isOnline: boolean }>('GET', `/edge-routers/${id}`)
        return isOnline
      })
    },
    async stop(signal) {
      const running = child
      child = undefined
      if (!running || running.exitCode !== null) return
      const ended = onceEmitted(running, 'exit')
      running.kill(signal)
      await ended
    },
    [Symbol.asyncDispose]: () => router.stop('SIGKILL'),
  }
  await router.start()
  return router
}

/** JSON is YAML. */
async function configOf({ controllers, tunnel }: GoRouterOptions, folder: string): Promise<string> {
  const [links, clients] = [await freePort(), await freePort()]
  const listeners = [
    {
      binding: 'edge',
      address: `tls:127.0.0.1:${clients}`,
      options: { advertise: `localhost:${clients}`, connectTimeoutMs: 5000, getSessionTimeout: 60 },
    },
    ...(tunnel ? [{ binding: 'tunnel', options: { mode: tunnel } }] : []),
  ]
  const config = {
    v: 3,
    identity: {
      cert: join(folder, 'router.cert'),
      server_cert: join(folder, 'router.server.chain.cert'),
      key: join(folder, 'router.key'),
      ca: join(folder, 'router.cas'),
    },
    ctrl: { endpoints: controllers.map((address) => `tls:${address}`) },
    link: {
      dialers: [{ binding: 'transport' }],
      listeners: [
        { binding: 'transport', bind: `tls:127.0.0.1:${links}`, advertise: `tls:localhost:${links}` },
      ],
    },
    listeners,
    edge: {
      csr: {
        country: 'US',
        province: 'NC',
        locality: 'Test',
        organization: 'Test',
        organizationalUnit: 'Test',
        sans: { dns: ['localhost'], ip: ['127.0.0.1'] },
      },
    },
  }
  return JSON.stringify(config, undefined, 2)
}
