import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { credentials } from '@grpc/grpc-js'
import { freePort } from '@overlay/launcher/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dial } from '../../packages/rpc/src/dial.js'
import { carryFrames } from '../../packages/rpc/src/frame-connection.js'
import { Answer, Call } from '../../packages/rpc/src/gen/overlay/stream/v1/stream.js'
import { newAuthority } from '../authority.js'
import { launch, untilOutput } from '../launch.js'
import { environmentOf, listenersOf, treeOf } from '../listeners.js'
import { type Calls, LIST_SERVICES, openCalls, probe, REFLECTION, type Target } from '../stranger.js'

type Expected = Readonly<Record<string, string>>

const withoutTls = {
  bytes: 'closed',
  http: 'closed',
  http2: 'closed',
  nats: 'closed',
  postgres: 'closed',
  grpc: 'UNAVAILABLE',
}
const withTls = { tls: 'closed', tlsOther: 'closed', grpcTls: 'UNAVAILABLE', grpcTlsOther: 'UNAVAILABLE' }
const closed: Expected = { ...withoutTls, ...withTls }
/** A client without TLS reads what is wrong. */
const control: Expected = { ...closed, http: 'HTTP 400', http2: 'HTTP 400' }
const api: Expected = { ...control, tls: 'HTTP 401', tlsOther: 'HTTP 401' }
const plainHttp: Expected = {
  ...closed,
  bytes: 'HTTP 400',
  http: 'HTTP 404',
  http2: 'HTTP 400',
  nats: 'HTTP 400',
  postgres: 'HTTP 400',
}

/** What a stranger gets, by the name of the port in SECURITY.md. */
const refusals: Readonly<Record<string, Expected>> = {
  APIs: api,
  'APIs of one process': api,
  'Control channel': control,
  'Control channel of one process': control,
  'Calls between processes': closed,
  'Health and metrics of a process': plainHttp,
  'Health and metrics of the product': plainHttp,
  'gRPC health': { ...closed, http2: 'HTTP/2', grpc: 'health OK, else UNIMPLEMENTED' },
  Bus: { ...closed, natsTls: 'closed', natsTlsOther: 'closed' },
  Postgres: { ...closed, postgres: 'Postgres asks for a password' },
}

let home: string
let product: Awaited<ReturnType<typeof startAll>>
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  product = await startAll(home)
  await untilOutput(product.launcher, /ziti edge login/)
})
afterAll(async () => {
  const ended = once(product.launcher, 'exit')
  if (product.launcher.kill('SIGINT')) await ended
  await rm(home, { recursive: true })
})
const root = (): number => product.launcher.pid ?? 0

test('the product listens where SECURITY.md says, and no port gives a stranger more than it says', async () => {
  const instances = await instancesOf(root())
  const named = namedSockets(product.env, instances)
  const listeners = await listenersOf(root())
  expect(listeners.map(({ socket }) => socket).sort()).toEqual([...named.keys()].sort())
  expect([...new Set(named.values())].sort()).toEqual((await documentedNames()).sort())

  const stranger = await (await newAuthority('another authority')).certify('policy', { dns: 'policy' })
  const answers = [...named].map(async ([socket, name]) => {
    const answer = await probe(targetOf(socket), { ...stranger, isNats: name === 'Bus' })
    return [`${name}: ${socket}`, answer] as const
  })
  const expected = [...named].map(([socket, name]) => [`${name}: ${socket}`, refusals[name]] as const)
  expect(Object.fromEntries(await Promise.all(answers))).toEqual(Object.fromEntries(expected))

  expect(await instancesOf(root())).toEqual(instances) // none has crashed
  expect(await errorsIn(home)).toEqual([])
})

test('a process may call its own methods and no others, and none without a certificate', async () => {
  const instances = await instancesOf(root())
  const own = instances.find(({ env }) => env.OVERLAY_RPC_LISTEN?.endsWith('/policy-1.sock'))?.env ?? {}
  const { OVERLAY_TLS: directory = '', OVERLAY_SESSIONS_PEERS: peers = '' } = own as Instance['env']
  const [sessions = ''] = peers.split(',')
  const inspect = '/overlay.sessions.v1.SessionsService/Inspect'

  using policy = await callsAs(directory, sessions)
  expect(await policy.call(inspect)).toBe('PERMISSION_DENIED')
  const reached = await policy.call('/overlay.change.v1.ChangeService/Reach') // its own, but without a position
  expect(reached).toBe('UNKNOWN')
  const answer = await callInFrames(directory, sessions, inspect)
  expect(answer).toMatchObject({ tag: 1, fault: { code: 'PERMISSION_DENIED' } })

  using operator = await callsAs(join(dirname(directory), 'operator'), sessions)
  expect(await operator.call('/grpc.health.v1.Health/Check')).toBe('OK')
  expect(await operator.call(REFLECTION, LIST_SERVICES)).toBe('OK')
  expect(await operator.call(inspect)).toBe('PERMISSION_DENIED')

  using impostor = await callsAs(directory, sessions, 'pki') // expects pki, and reaches sessions
  expect(await impostor.call('/grpc.health.v1.Health/Check')).toBe('UNAVAILABLE')
  const authority = await readFile(join(directory, 'ca.crt'))
  using anonymous = openCalls(sessions, credentials.createSsl(authority), named('sessions'))
  expect(await anonymous.call('/grpc.health.v1.Health/Check')).toBe('UNAVAILABLE')
})

const named = (service: string) => ({ 'grpc.ssl_target_name_override': service })

const certificateIn = (directory: string) =>
  Promise.all([
    readFile(join(directory, 'ca.crt')),
    readFile(join(directory, 'tls.key')),
    readFile(join(directory, 'tls.crt')),
  ])

/** The answer to a call as the processes of the product make them. */
async function callInFrames(directory: string, address: string, method: string): Promise<Answer> {
  const [ca, key, cert] = await certificateIn(directory)
  const options = { ca, key, cert, servername: 'sessions', checkServerIdentity: () => undefined }
  const socket = await dial(address, options)
  return new Promise((resolve, reject) => {
    const connection = carryFrames(socket, {
      message(bytes) {
        resolve(Answer.decode(bytes))
        socket.destroy()
      },
      ended: () => undefined,
      drained: () => undefined,
      closed: reject,
    })
    connection.send(Buffer.from(Call.encode(Call.fromPartial({ tag: 1, method })).finish()))
  })
}

/** Calls with the certificate in a directory. */
async function callsAs(directory: string, address: string, service = 'sessions'): Promise<Calls> {
  const [authority, key, certificate] = await certificateIn(directory)
  return openCalls(address, credentials.createSsl(authority, key, certificate), named(service))
}

/** Two of each process, with every port that a setting can open. */
async function startAll(home: string) {
  const env = {
    OVERLAY_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_CTRL_ADDRESS: `localhost:${await freePort()}`,
    OVERLAY_METRICS_ADDRESS: `127.0.0.1:${await freePort()}`,
    OVERLAY_GRPC_HEALTH_LISTEN: `127.0.0.1:${randomInt(10_000, 19_000)}`, // ten ports
  }
  const launcher = launch(home, env, ['--scale', 'gateway=2,identity=2,pki=2,policy=2,sessions=2'])
  return { launcher, env }
}

interface Instance {
  readonly pid: number
  readonly env: Readonly<Record<string, string>>
}

/** The processes of the product, without its servers. */
async function instancesOf(root: number): Promise<Instance[]> {
  const [, ...pids] = await treeOf(root)
  const all = await Promise.all(pids.map(async (pid) => ({ pid, env: await environmentOf(pid) })))
  return all.filter(({ env }) => 'OVERLAY_OPS_LISTEN' in env)
}

/** The name in SECURITY.md of each socket that the settings open. */
function namedSockets(env: Instance['env'], instances: readonly Instance[]): Map<string, string> {
  const named = new Map([
    [socketAt(env.OVERLAY_ADDRESS), 'APIs'],
    [socketAt(env.OVERLAY_CTRL_ADDRESS), 'Control channel'],
    [socketAt(env.OVERLAY_METRICS_ADDRESS), 'Health and metrics of the product'],
  ])
  for (const { env } of instances) {
    const directory = env.DATABASE_URL && new URL(env.DATABASE_URL).searchParams.get('host')
    if (directory) named.set(`unix ${directory}/.s.PGSQL.5432`, 'Postgres')
    if (env.NATS_URL) named.set(socketAt(new URL(env.NATS_URL).host), 'Bus') // the gateway has none
    for (const [setting, name] of Object.entries(settings))
      if (env[setting]) named.set(socketAt(env[setting]), name)
  }
  return named
}

const settings = {
  OVERLAY_LISTEN: 'APIs of one process',
  OVERLAY_CTRL_LISTEN: 'Control channel of one process',
  OVERLAY_RPC_LISTEN: 'Calls between processes',
  OVERLAY_OPS_LISTEN: 'Health and metrics of a process',
  OVERLAY_GRPC_HEALTH_LISTEN: 'gRPC health',
}

const socketAt = (address = ''): string =>
  address.startsWith('unix:') ? address.replace(':', ' ') : `tcp ${address.replace('localhost', '127.0.0.1')}`

function targetOf(socket: string): Target {
  const [, path, host = '', port] = /^(?:unix (.*)|tcp (.*):(\d+))$/.exec(socket) ?? []
  return path === undefined ? { host, port: Number(port) } : { path }
}

async function documentedNames(): Promise<string[]> {
  const text = await readFile(join(import.meta.dirname, '../../SECURITY.md'), 'utf8')
  const [, section = ''] = text.split('## Ports and sockets\n')
  const rows = section.split('\n## ')[0]?.matchAll(/^\| ([^|]+?) \|/gm) ?? []
  return [...rows].map(([, name = '']) => name).filter((name) => name !== 'Port')
}

/** Lines of all processes that report a failure of the product. */
async function errorsIn(home: string): Promise<string[]> {
  const files = (await readdir(home)).filter((name) => name.endsWith('.log'))
  const texts = await Promise.all(files.map((name) => readFile(join(home, name), 'utf8')))
  return texts.flatMap((text) => text.split('\n')).filter((line) => /"level":"(error|fatal)"/.test(line))
}
