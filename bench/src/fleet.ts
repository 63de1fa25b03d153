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
  SubscribeToDataModelRequest,
  Unroute,
  ValidateTerminatorsV2Request,
  ValidateTerminatorsV2Response,
} from '@overlay/channel'
import { type Controllers, openControllers } from '../../test-e2e/router/controllers.js'
import type { RouterIdentity } from '../../test-e2e/router/identity.js'
import { type Line, modelType } from '../../test-e2e/router/lines.js'
import { type Api, clientRoot, forEach, openApi } from './api.js'
import { keyAndRequest } from './certificate-request.js'
import type { RunningController } from './options.js'
import { between, memoryKib, timesOf } from './processor-time.js'
import { allAttribute } from './topology.js'

/** Connected routers that do what controllers ask, without SDKs or links. */
export interface Fleet extends AsyncDisposable {
  readonly size: number
  /** The routers have a data model. */
  readonly hasModel: boolean
  /** The channel of the router that identities may use. */
  first(): Channel
  /** Resolves to the time at which all routers have the API session, as of performance.now(). */
  untilPushed(token: string): Promise<number>
  /** Resolves to the time at which each router has received a change of its data model since the call. */
  untilChanged(): Promise<number>
  /** Bodies of all messages, of all routers together. */
  receivedBytes(): number
  /** Called with the circuit of each Unroute. */
  onUnroute: (circuitId: string) => void
}

const atOnce = 8
const SETTLE_MS = 10_000

/** Connects routers, and reports what they cost in time and memory. */
export async function startFleet(
  admin: Api,
  { url, ctrlAddress, pids }: RunningController,
  { count, line }: { readonly count: number; readonly line: Line },
  print: (line: string) => void,
): Promise<Fleet> {
  if (!ctrlAddress) throw new Error('--ctrl is missing')
  const started = performance.now()
  const kib = memoryKib(pids, 'sessions')
  const identities = await enrollFleet(url, admin, count, line)
  const enrolled = performance.now()
  print(`${count} routers enrolled in ${((enrolled - started) / 1000).toFixed(1)} s`)
  await pause(SETTLE_MS)
  const [times, connecting] = [timesOf(pids), performance.now()]
  const fleet = await connectFleet(identities, ctrlAddress, line)
  const seconds = (performance.now() - connecting) / 1000
  const cpu = [...between(times, timesOf(pids))].map(
    ([component, ms]) => `${component} ${(ms / count).toFixed(2)}`,
  )
  print(`${count} routers connected in ${seconds.toFixed(1)} s, CPU ms of each: ${cpu.join(', ')}`)
  await pause(SETTLE_MS)
  const kibOfEach = (memoryKib(pids, 'sessions') - kib) / count
  print(`memory of sessions: ${kibOfEach.toFixed(0)} KiB for each router, with its enrollment`)
  print(`${(fleet.receivedBytes() / count / 1024).toFixed(0)} KiB received by each router`)
  return fleet
}

/**
 * Creates routers and enrolls them. All identities may use them; all services may use the first one, and the others if they
 * have a data model, which contains what may use them.
 */
async function enrollFleet(url: string, admin: Api, count: number, line: Line): Promise<RouterIdentity[]> {
  const run = Date.now().toString(36)
  const fleet = { name: `bench-fleet-${run}`, semantic: 'AnyOf', edgeRouterRoles: ['#bench-fleet'] }
  const all = [`#${allAttribute}`]
  await admin.request('POST', '/edge-router-policies', { ...fleet, identityRoles: all })
  if (line !== '1.1')
    await admin.request('POST', '/service-edge-router-policies', { ...fleet, serviceRoles: all })
  const anonymous = openApi(url, clientRoot, atOnce)
  return forEach(count, atOnce, async (at) => {
    const name = `bench-fleet-${run}-${at}`
    const roleAttributes = at === 0 ? [allAttribute, 'bench-fleet'] : ['bench-fleet']
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

/** Connects all routers. Resolves when each has the API sessions, and its data model. */
async function connectFleet(
  identities: readonly RouterIdentity[],
  ctrlAddress: string,
  line: Line,
): Promise<Fleet> {
  const pushes = new Map<string, Push>()
  const synced = new Set<string>()
  const modelled = new Set<string>()
  const hasModel = line !== '1.1'
  let receivedBytes = 0
  let unchanged = new Set<string>()
  let allChanged = (_at: number): void => {}
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
      noteSynced()
      return
    }
    for (const { token } of apiSessions) {
      const push = pushOf(token)
      push.routers++
      if (push.routers === identities.length) push.resolve(performance.now())
    }
  }

  function noteSynced(): void {
    const isComplete = (set: ReadonlySet<string>): boolean => set.size === identities.length
    if (isComplete(synced) && (!hasModel || isComplete(modelled))) allSynced()
  }
  function noteModel({ type, body }: Message, routerId: string): void {
    if (type === modelType.state) {
      modelled.add(routerId)
      noteSynced()
    } else if (body.length > emptySetBytes && unchanged.delete(routerId) && unchanged.size === 0)
      allChanged(performance.now())
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
      line,
      onMessage(message, { channel }) {
        receivedBytes += message.body.length
        if (message.type === edgeType.serverHello && hasModel)
          channel.send({ type: modelType.subscribe, body: subscription(identity.id) })
        if (message.type === modelType.state || message.type === modelType.changeSet)
          noteModel(message, identity.id)
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
    hasModel,
    first() {
      const channel = opened[0]?.any()?.channel
      if (!channel) throw new Error('the first router is not connected')
      return channel
    },
    untilPushed: (token) => pushOf(token).done,
    untilChanged() {
      unchanged = new Set(identities.map(({ id }) => id))
      const { promise, resolve } = Promise.withResolvers<number>()
      allChanged = resolve
      return promise
    },
    receivedBytes: () => receivedBytes,
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

/** A change set without changes is smaller. */
const emptySetBytes = 32

/** The product keeps a subscription for six minutes at most. */
const subscription = (subscriptionId: string): Uint8Array =>
  SubscribeToDataModelRequest.encode({
    currentIndex: 0n,
    subscriptionDurationSeconds: 360,
    renew: false,
    timelineId: '',
    subscriptionId,
  }).finish()

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
