import { setTimeout as pause } from 'node:timers/promises'
import {
  ApiSessionAdded,
  type Channel,
  ClientHello,
  ctrlType,
  edgeType,
  encodeBool,
  encodeUint32,
  type Message,
  type Outgoing,
  Route,
  routeResultHeader,
  Unroute,
  ValidateTerminatorsV2Request,
  ValidateTerminatorsV2Response,
} from '@overlay/channel'
import { type Controllers, openControllers } from '../../test-e2e/router/controllers.js'
import type { RouterIdentity } from '../../test-e2e/router/identity.js'
import { type Api, clientRoot, forEach, openApi } from './api.js'
import { keyAndRequest } from './certificate-request.js'
import type { RunningController } from './options.js'
import { between, memoryKib, timesOf } from './processor-time.js'
import { allAttribute } from './topology.js'

/** Connected routers that do what controllers ask, without SDKs or links. */
export interface Fleet extends AsyncDisposable {
  readonly size: number
  /** The channel of the router that identities may use. */
  first(): Channel
  /** Resolves to the time at which all routers have the API session, as of performance.now(). */
  untilPushed(token: string): Promise<number>
  /** Called with the circuit of each Unroute. */
  onUnroute: (circuitId: string) => void
}

const atOnce = 8
const SETTLE_MS = 10_000

/** Connects routers, and reports what they cost in time and memory. */
export async function startFleet(
  admin: Api,
  { url, ctrlAddress, pids }: RunningController,
  count: number,
  print: (line: string) => void,
): Promise<Fleet> {
  if (!ctrlAddress) throw new Error('--ctrl is missing')
  const started = performance.now()
  const kib = memoryKib(pids, 'sessions')
  const identities = await enrollFleet(url, admin, count)
  const enrolled = performance.now()
  print(`${count} routers enrolled in ${((enrolled - started) / 1000).toFixed(1)} s`)
  await pause(SETTLE_MS)
  const [times, connecting] = [timesOf(pids), performance.now()]
  const fleet = await connectFleet(identities, ctrlAddress)
  const seconds = (performance.now() - connecting) / 1000
  const cpu = [...between(times, timesOf(pids))].map(
    ([component, ms]) => `${component} ${(ms / count).toFixed(2)}`,
  )
  print(`${count} routers connected in ${seconds.toFixed(1)} s, CPU ms of each: ${cpu.join(', ')}`)
  await pause(SETTLE_MS)
  const kibOfEach = (memoryKib(pids, 'sessions') - kib) / count
  print(`memory of sessions: ${kibOfEach.toFixed(0)} KiB for each router, with its enrollment`)
  return fleet
}

/** Creates routers and enrolls them. The first one is in the policies of all identities and services. */
function enrollFleet(url: string, admin: Api, count: number): Promise<RouterIdentity[]> {
  const run = Date.now().toString(36)
  const anonymous = openApi(url, clientRoot, atOnce)
  return forEach(count, atOnce, async (at) => {
    const name = `bench-fleet-${run}-${at}`
    const roleAttributes = [at === 0 ? allAttribute : 'bench-fleet']
    const { id } = await admin.request<{ id: string }>('POST', '/edge-routers', { name, roleAttributes })
    const { enrollmentToken } = await admin.request<{ enrollmentToken: string }>('GET', `/edge-routers/${id}`)
    const { csr, key } = await keyAndRequest(id)
    const path = `/enroll?method=erott&token=${enrollmentToken}`
    const body = { certCsr: csr, serverCertCsr: csr }
    const { cert, ca } = await anonymous.request<{ cert: string; ca: string }>('POST', path, body)
    const certificate = { key, cert }
    return { id, name, client: certificate, server: certificate, caPem: ca }
  }).finally(() => anonymous[Symbol.dispose]())
}

/** Connects all routers. Resolves when each has the API sessions. */
async function connectFleet(identities: readonly RouterIdentity[], ctrlAddress: string): Promise<Fleet> {
  const pushes = new Map<string, Push>()
  const synced = new Set<string>()
  const refused = new Set<string>()
  let allSynced = (): void => {}
  const ready = new Promise<void>((resolve) => {
    allSynced = resolve
  })

  function pushOf(token: string): Push {
    let push = pushes.get(token)
    if (!push) {
      const { promise, resolve } = Promise.withResolvers<number>()
      push = { routers: 0, done: promise, resolve }
      pushes.set(token, push)
    }
    return push
  }

  const decode = decodeOnce()
  function notePush({ body }: Message, routerId: string): void {
    const { isFullState, apiSessions } = decode(body)
    if (isFullState) {
      synced.add(routerId)
      if (synced.size === identities.length) allSynced()
      return
    }
    for (const { token } of apiSessions) {
      const push = pushOf(token)
      push.routers++
      if (push.routers === identities.length) push.resolve(performance.now())
    }
  }

  const answers: Readonly<Record<number, (message: Message) => Outgoing>> = {
    [edgeType.serverHello]: () => ({ type: edgeType.clientHello, body: clientHello }),
    [ctrlType.route]: (message) => routeResult(message),
    [ctrlType.validateTerminatorsV2]: (message) => allValid(message),
  }
  const open = (identity: RouterIdentity): Controllers => {
    const controllers = openControllers({
      identity,
      addresses: [ctrlAddress],
      retryMs: 1000 + Math.random() * 1000,
      onMessage(message, { channel }) {
        const answer = answers[message.type]
        if (answer) channel.reply(message, answer(message))
        if (message.type === edgeType.apiSessionAdded) notePush(message, identity.id)
        if (message.type === ctrlType.unroute) fleet.onUnroute(Unroute.decode(message.body).circuitId)
      },
      onRefused: (_, err) => refused.add(String(err)),
    })
    controllers.start()
    return controllers
  }

  const opened: Controllers[] = []
  const fleet: Fleet = {
    size: identities.length,
    first() {
      const channel = opened[0]?.any()?.channel
      if (!channel) throw new Error('the first router is not connected')
      return channel
    },
    untilPushed: (token) => pushOf(token).done,
    onUnroute: () => {},
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((controllers) => controllers[Symbol.asyncDispose]()))
    },
  }
  opened.push(...identities.map(open))
  const late = setTimeout(() => {
    console.error(`${synced.size} of ${identities.length} routers are connected: ${[...refused].join('; ')}`)
  }, 60_000)
  await ready
  clearTimeout(late)
  return fleet
}

interface Push {
  routers: number
  readonly done: Promise<number>
  readonly resolve: (at: number) => void
}

/** All routers receive the same bytes. */
function decodeOnce(): (body: Buffer) => ApiSessionAdded {
  let last: Buffer = Buffer.alloc(0)
  let decoded = ApiSessionAdded.decode(last)
  return (body) => {
    if (!body.equals(last)) {
      last = body
      decoded = ApiSessionAdded.decode(body)
    }
    return decoded
  }
}

const clientHello = ClientHello.encode(
  ClientHello.fromPartial({
    version: 'v1.1.13',
    hostname: 'localhost',
    listeners: [{ advertise: { value: 'localhost:1', protocol: 'tls', hostname: 'localhost', port: 1 } }],
  }),
).finish()

function routeResult({ body }: Message): Outgoing {
  const { circuitId, attempt } = Route.decode(body)
  const headers = new Map([
    [routeResultHeader.attempt, encodeUint32(attempt)],
    [routeResultHeader.success, encodeBool(true)],
  ])
  return { type: ctrlType.routeResult, headers, body: Buffer.from(circuitId) }
}

function allValid({ body }: Message): Outgoing {
  const states = ValidateTerminatorsV2Request.decode(body).terminators.map(
    ({ id, marker }) => [id, { valid: true, reason: 0, detail: '', marker }] as const,
  )
  const response = ValidateTerminatorsV2Response.encode({ states: new Map(states) }).finish()
  return { type: ctrlType.validateTerminatorsV2Response, body: response }
}
