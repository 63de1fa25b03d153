import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Admin } from './admin.js'
import type { Server } from './client.js'
import type { Member } from './member.js'
import { type Network, type NetworkOptions, startNetwork } from './network.js'
import { enrollRouter } from './router/identity.js'
import { type RouterOptions, startRouter, type TestRouter } from './router/router.js'
import { type Connection, connectSdk, echo, type TestSdk } from './router/sdk.js'

/** A network whose routers every identity and every service may use. */
export interface Traffic extends AsyncDisposable {
  readonly network: Network
  readonly server: Server
  readonly admin: Admin
  /** Enrolls a router, connects it to all replicas unless told otherwise, and waits until it is online. */
  router(name: string, options?: Partial<NewRouter>): Promise<TestRouter>
  /** Connects a router that is enrolled, as `router` does. */
  start(options: Pick<RouterOptions, 'identity'> & Partial<RouterOptions>): Promise<TestRouter>
  /** Creates a service that identities with `#host` may bind and those with `#client` may dial. */
  service(name: string, body?: object): Promise<string>
  /** Enrolls an identity. */
  member(name: string, ...roleAttributes: string[]): Promise<Member>
  /** Connects an application of the member. */
  connect(member: Member, router: TestRouter): Promise<TestSdk>
  /** Hosts a service, and waits until its terminator exists. `host`: default: a new identity. */
  hosted(service: string, router: TestRouter, host?: Member): Promise<Hosted>
  /** Dials a service. `client`: default: a new identity. */
  dialed(serviceId: string, router: TestRouter, client?: Member): Promise<Dialed>
  /** From now on, endpoints that dial the service must be of this domain. */
  requireDomain(serviceId: string, domain: string): Promise<void>
  /** Routers on the path of the circuit of a session. */
  routePath(session: Session): Promise<string[]>
  /** Rules of the protocol that controllers have broken at any router. The end of the traffic expects none. */
  violations(): string[]
}

export interface NewRouter extends RouterOptions {
  /** Further members of the edge router. */
  readonly body: object
}

/** An application that has dialed a service. */
export interface Dialed {
  readonly member: Member
  readonly sdk: TestSdk
  readonly session: Session
  readonly connection: Connection
}

export interface Hosted {
  readonly serviceId: string
  readonly member: Member
  readonly sdk: TestSdk
  readonly session: Session
  /** Those that it has accepted. It echoes what they send. */
  readonly accepted: readonly Connection[]
}

export interface Session {
  readonly id: string
  readonly token: string
}

export const openSession = (member: Member, serviceId: string, type: 'Dial' | 'Bind'): Promise<Session> =>
  member.request<Session>('POST', '/sessions', { serviceId, type })

/** Sends bytes and receives as many. Throws if the connection ends. */
export async function exchange(connection: Connection, sent: Buffer): Promise<Buffer> {
  connection.write(sent)
  const received: Buffer[] = []
  for (let left = sent.length; left > 0; ) {
    const chunk = connection.read() as Buffer | null
    if (chunk) received.push(chunk)
    else if (connection.readableEnded || connection.destroyed) throw new Error('the connection has ended')
    else await nextOf(connection, ['readable', 'end', 'close'])
    left -= chunk?.length ?? 0
  }
  return Buffer.concat(received)
}

/** Waits for the first of these events, and leaves no listener behind. */
async function nextOf(connection: Connection, events: readonly string[]): Promise<void> {
  const done = new AbortController()
  const waits = events.map((event) => once(connection, event, { signal: done.signal }))
  try {
    await Promise.race(waits)
  } finally {
    done.abort()
    await Promise.allSettled(waits)
  }
}

/** Polls until the check succeeds. Throws its last failure after `ms`. */
export async function until<T>(
  check: () => Promise<T | undefined | false> | T | undefined | false,
  ms = 60_000,
): Promise<T> {
  const deadline = performance.now() + ms
  for (;;) {
    const result = await check()
    if (result) return result
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${check}`)
    await pause(20)
  }
}

export async function startTraffic(options: NetworkOptions = {}): Promise<Traffic> {
  const network = await startNetwork(options)
  const started: AsyncDisposable[] = [network]
  let violations = (): string[] => []
  const use = <T extends AsyncDisposable>(one: T): T => {
    started.push(one)
    return one
  }
  const dispose = async (): Promise<void> => {
    for (const one of started.splice(0).reverse()) await one[Symbol.asyncDispose]()
    // what routers would lose silently, misunderstand or die of
    if (violations().length > 0) throw new Error(`routers received: ${violations().join('\n')}`)
  }
  try {
    const admin = await network.admin()
    await permitAll(admin)
    const server = { addresses: [network.address], caPem: network.caPem }
    const traffic = trafficOf({ server, controllers: network.controllers, admin }, use)
    violations = traffic.violations
    return {
      ...traffic,
      network,
      [Symbol.asyncDispose]: dispose,
    }
  } catch (err) {
    await dispose()
    throw err
  }
}

async function permitAll(admin: Admin): Promise<void> {
  const semantic = 'AnyOf'
  const [all, edgeRouterRoles] = [['#all'], ['#all']]
  await Promise.all([
    admin.create('edge-router-policies', { name: 'all', semantic, identityRoles: all, edgeRouterRoles }),
    admin.create('service-edge-router-policies', {
      name: 'all',
      semantic,
      serviceRoles: all,
      edgeRouterRoles,
    }),
  ])
}

/** A network that runs already. */
export interface RunningNetwork {
  readonly server: Server
  /** `host:port` of each replica of sessions. */
  readonly controllers: readonly string[]
  readonly admin: Admin
  /** Of its routers. */
  readonly roleAttributes?: readonly string[]
}

/** @param use gets what must be disposed of at the end, in the order of its start */
export function trafficOf(
  { server, controllers, admin, roleAttributes = [] }: RunningNetwork,
  use: <T extends AsyncDisposable>(one: T) => T,
): Omit<Traffic, 'network' | keyof AsyncDisposable> {
  let count = 0
  const routers: TestRouter[] = []
  const traffic = {
    server,
    admin,
    violations: () => routers.flatMap((router) => router.violations()),
    async router(name: string, { body, ...more }: Partial<NewRouter> = {}) {
      const identity = await enrollRouter(admin, server, { name, roleAttributes, ...body })
      return traffic.start({ identity, ...more })
    },
    async start(options: Pick<RouterOptions, 'identity'> & Partial<RouterOptions>) {
      const router = use(await startRouter({ controllers, ...options }))
      routers.push(router)
      await until(() => isOnline(admin, router))
      return router
    },
    async service(name: string, body: object = {}) {
      const id = await admin.create('services', { name, encryptionRequired: false, ...body })
      const policy = { semantic: 'AnyOf', serviceRoles: [`@${id}`] }
      await Promise.all([
        admin.create('service-policies', {
          ...policy,
          name: `${name}-bind`,
          type: 'Bind',
          identityRoles: ['#host'],
        }),
        admin.create('service-policies', {
          ...policy,
          name: `${name}-dial`,
          type: 'Dial',
          identityRoles: ['#client'],
        }),
      ])
      return id
    },
    member: (name: string, ...roleAttributes: string[]) => admin.enroll({ name, roleAttributes }),
    connect: async ({ apiSessionToken, certificate }: Member, router: TestRouter) =>
      use(
        await connectSdk({
          url: router.url ?? '',
          certificate,
          caPem: router.identity.caPem,
          apiSessionToken,
        }),
      ),
    async hosted(service: string, router: TestRouter, host?: Member) {
      const serviceId = await traffic.service(service)
      const member = host ?? (await traffic.member(`${service}-host`, 'host'))
      const sdk = await traffic.connect(member, router)
      const session = await openSession(member, serviceId, 'Bind')
      const accepted: Connection[] = []
      const onConnection = (connection: Connection): void => {
        accepted.push(connection)
        echo(connection)
      }
      await onceGranted(() => sdk.host(session.token, { onConnection }).then(() => true))
      return { serviceId, member, sdk, session, accepted }
    },
    async dialed(serviceId: string, router: TestRouter, client?: Member) {
      const member = client ?? (await traffic.member(`client-${count++}`, 'client'))
      const sdk = await traffic.connect(member, router)
      const session = await openSession(member, serviceId, 'Dial')
      return { member, sdk, session, connection: await onceGranted(() => sdk.dial(session.token)) }
    },
    async requireDomain(serviceId: string, domain: string) {
      const name = `domain-${count++}`
      const check = { name, typeId: 'DOMAIN', domains: [domain], roleAttributes: [name] }
      await admin.create('posture-checks', check)
      const path = `/services/${serviceId}/service-policies`
      const policies = await admin.request<{ id: string; type: string }[]>('GET', path)
      const dial = policies.find(({ type }) => type === 'Dial')
      await admin.request('PATCH', `/service-policies/${dial?.id}`, { postureCheckRoles: [`#${name}`] })
    },
    async routePath({ id }: Session) {
      const { routePath } = await admin.request<{ routePath: string[] }>('GET', `/sessions/${id}/route-path`)
      return routePath
    },
  }
  return traffic
}

/** A router with a data model knows some ten milliseconds after a change who may do what. Applications try again. */
const onceGranted = <T>(attempt: () => Promise<T>): Promise<T> =>
  until(() =>
    attempt().catch((err: unknown) => {
      if (!String(err).includes('no access to service')) throw err
      return undefined
    }),
  )

/** Online, with the URL for SDKs. */
async function isOnline(admin: Admin, { id, url }: TestRouter): Promise<boolean> {
  const { isOnline, supportedProtocols } = await admin.request<{
    isOnline: boolean
    supportedProtocols: { tls?: string }
  }>('GET', `/edge-routers/${id}`)
  return isOnline && supportedProtocols.tls === url
}
