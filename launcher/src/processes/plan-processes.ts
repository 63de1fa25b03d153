import { join } from 'node:path'
import { splitAddress } from '@overlay/process/settings'
import type { Secrets } from '../home/secrets.js'
import { type Service, services } from '../servers/schemas.js'
import type { LauncherSettings } from '../settings/settings.js'
import type { Account } from '../system/account.js'
import { freePort } from '../system/ports.js'
import { projectRoot } from '../system/project-root.js'
import type { SharedSocket } from './shared-socket.js'

export const components = ['gateway', ...services] as const
export type Component = (typeof components)[number]

/** The number of processes of each component. */
export type Scale = Readonly<Record<Component, number>>

export const scaleOf = (count: number): Scale => ({
  gateway: count,
  identity: count,
  pki: count,
  policy: count,
  sessions: count,
})

/** Which processes run: some of each component, or some with all components. */
export type Layout = { readonly separate: Scale } | { readonly replicas: number }

/** One process of the product. */
export interface ProcessPlan {
  readonly name: string
  readonly entry: string
  readonly env: Readonly<Record<string, string>>
  readonly ops: string // address of its health checks
  /** The stage of the stop in which it ends. */
  readonly stage: 'gateway' | 'services'
  /** Passed from descriptor 4 on: at the addresses of all processes of a component. */
  readonly sharedSockets: readonly SharedSocket[]
}

/** One replica of a component, and its process if it does not share one with the other components. */
export interface Instance extends ProcessPlan {
  readonly component: Component
  readonly listen: string // address for clients
  readonly ctrlListen?: string | undefined // address for routers
}

export interface PlanOptions {
  readonly settings: LauncherSettings
  readonly scale: Scale
  readonly secrets: Secrets
  readonly natsUrl: string
  readonly sockets: string // directory of the services' sockets
  readonly snapshots: string
  readonly account: Account
  readonly console: string | undefined // directory of the web console
  /** At the address of the gateways, where they do not listen there themselves. Each then also has an address of its own. */
  readonly socket: SharedSocket | undefined
  readonly ctrlSocket: SharedSocket | undefined // the same for the control channel
  readonly entry: string // of each process, below its folder
  /** The directory of the certificate of a process. */
  certificateOf(name: string, component: Component): Promise<string>
  urlOf(service: Service): string
}

/** Gives every process its addresses and its environment. A restart keeps them. */
export async function planInstances({
  settings,
  scale,
  secrets,
  natsUrl,
  sockets,
  snapshots,
  account,
  console,
  socket,
  ctrlSocket,
  entry,
  certificateOf,
  urlOf,
}: PlanOptions): Promise<Instance[]> {
  const addressed = await Promise.all(
    components.flatMap((component) =>
      Array.from({ length: scale[component] }, async (_, at) => {
        const name = scale[component] > 1 ? `${component}-${at + 1}` : component
        const listenOf = async (): Promise<string> => {
          if (component !== 'gateway') return `unix:${join(sockets, `${name}.sock`)}`
          return socket ? freeLoopbackAddress() : settings.listen
        }
        const ctrlListenOf = async (): Promise<string | undefined> => {
          if (component !== 'sessions') return undefined
          return ctrlSocket ? freeLoopbackAddress() : settings.ctrlListen
        }
        return {
          component,
          name,
          ops: await freeLoopbackAddress(),
          listen: await listenOf(),
          tls: await certificateOf(name, component),
          ctrlListen: await ctrlListenOf(),
        }
      }),
    ),
  )
  const peers = services.map((service) => {
    const addresses = addressed.flatMap(({ component, listen }) => (component === service ? listen : []))
    return [`OVERLAY_${service.toUpperCase()}_PEERS`, addresses.join()]
  })
  const shared = {
    ...Object.fromEntries(peers),
    OVERLAY_ADDRESS: settings.address,
    OVERLAY_CTRL_ADDRESS: settings.ctrlAddress,
    OVERLAY_HOME: settings.home,
    OVERLAY_SNAPSHOTS: snapshots,
    OVERLAY_LOG_LEVEL: settings.logLevel,
    OVERLAY_LOG_FORMAT: settings.logFormat,
    ...(account.uid !== undefined && {
      OVERLAY_RUN_AS: `${account.uid}:${account.gid}`,
      UV_USE_IO_URING: '0', // operations that were queued before would keep root's rights
    }),
  }
  const { grpcHealthListen: first } = settings
  const healthListens = first === undefined ? [] : consecutive(first, addressed.length)
  const sharedSockets: { readonly [P in Component]?: SharedSocket | undefined } = {
    gateway: socket,
    sessions: ctrlSocket,
  }
  return addressed.map(({ component, name, ops, listen, tls, ctrlListen }, at) => ({
    component,
    name,
    ops,
    listen,
    ctrlListen,
    stage: component === 'gateway' ? 'gateway' : 'services',
    sharedSockets: [sharedSockets[component] ?? []].flat(),
    entry: join(projectRoot, component === 'gateway' ? 'gateway' : `services/${component}`, entry),
    env: {
      ...shared,
      OVERLAY_OPS_LISTEN: ops,
      OVERLAY_TLS: tls,
      ...(sharedSockets[component] && { [SHARED_SOCKETS]: `${component}:${FIRST_SOCKET}` }),
      OVERLAY_GRPC_HEALTH_LISTEN: healthListens[at] ?? '',
      ...(component === 'gateway'
        ? {
            OVERLAY_LISTEN: listen,
            ...(console && { OVERLAY_CONSOLE: console }),
          }
        : {
            OVERLAY_RPC_LISTEN: listen,
            DATABASE_URL: urlOf(component),
            NATS_URL: natsUrl,
            OVERLAY_NATS_TLS: settings.natsUrl === undefined ? tls : (settings.natsTls ?? ''),
          }),
      ...(ctrlListen !== undefined && {
        OVERLAY_CTRL_LISTEN: ctrlListen,
        OVERLAY_CTRL_ID: name,
      }),
      ...((component === 'pki' || component === 'identity') && {
        OVERLAY_KEY_SECRET: secrets.keySecrets[component],
      }),
    },
  }))
}

/** The n-th replicas of all components share the n-th process: see all-components.ts. */
export function inWholeProcesses(instances: readonly Instance[], count: number): ProcessPlan[] {
  return Array.from({ length: count }, (_, at) =>
    inOneProcess(
      count > 1 ? `overlay-${at + 1}` : 'overlay',
      components.flatMap((component) =>
        instances.filter((one) => one.component === component).slice(at, at + 1),
      ),
    ),
  )
}

function inOneProcess(name: string, instances: readonly Instance[]): ProcessPlan {
  const [gateway] = instances
  if (!gateway) throw new Error('no components')
  const listening = instances.filter(({ sharedSockets }) => sharedSockets.length > 0)
  return {
    name,
    entry: join(projectRoot, 'launcher/dist/all-components.js'),
    ops: gateway.ops,
    stage: 'gateway',
    sharedSockets: listening.flatMap(({ sharedSockets }) => sharedSockets),
    env: {
      ...gateway.env,
      UV_THREADPOOL_SIZE: process.env.UV_THREADPOOL_SIZE ?? '12', // hashes of passwords must not delay look-ups of names
      OVERLAY_COMPONENTS: JSON.stringify(
        Object.fromEntries(instances.map(({ component, env }) => [component, env])),
      ),
      [SHARED_SOCKETS]: listening.map(({ component }, at) => `${component}:${FIRST_SOCKET + at}`).join(),
    },
  }
}

const SHARED_SOCKETS = 'OVERLAY_SHARED_SOCKETS'
/** Descriptor 3 is the pipe of the launcher. */
const FIRST_SOCKET = 4

const freeLoopbackAddress = async (): Promise<string> => `127.0.0.1:${await freePort()}`

/** Addresses with the port of the first one and those that follow it. */
export function consecutive(first: string, count: number): string[] {
  const { host, port } = splitAddress(first)
  const shown = host.includes(':') ? `[${host}]` : host
  return Array.from({ length: count }, (_, at) => `${shown}:${port + at}`)
}
