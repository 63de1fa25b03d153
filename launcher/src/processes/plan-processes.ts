import { join } from 'node:path'
import { splitAddress } from '@overlay/process/settings'
import type { Secrets } from '../home/secrets.js'
import { type Service, services } from '../servers/schemas.js'
import type { LauncherSettings } from '../settings/settings.js'
import type { Account } from '../system/account.js'
import { freePort } from '../system/ports.js'
import { projectRoot } from '../system/project-root.js'
import type { SharedSocket } from './shared-socket.js'

export const parts = ['gateway', ...services] as const
export type Part = (typeof parts)[number]

/** The number of processes of each part. */
export type Scale = Readonly<Record<Part, number>>

export const scaleOf = (count: number): Scale => ({
  gateway: count,
  identity: count,
  pki: count,
  policy: count,
  sessions: count,
})

/** Which processes run: some of each part, or some with all parts. */
export type Layout = { readonly separate: Scale } | { readonly replicas: number }

/** One process of the product. */
export interface ProcessPlan {
  readonly name: string
  readonly entry: string
  readonly env: Readonly<Record<string, string>>
  readonly ops: string // address of its health checks
  /** The stage of the stop in which it ends. */
  readonly stage: 'gateway' | 'services'
  /** Passed from descriptor 4 on: at the addresses of all processes of a part. */
  readonly sharedSockets: readonly SharedSocket[]
}

/** One replica of a part, and its process if it does not share one with the other parts. */
export interface Instance extends ProcessPlan {
  readonly part: Part
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
  certificateOf(name: string, part: Part): Promise<string>
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
    parts.flatMap((part) =>
      Array.from({ length: scale[part] }, async (_, at) => {
        const name = scale[part] > 1 ? `${part}-${at + 1}` : part
        const listenOf = async (): Promise<string> => {
          if (part !== 'gateway') return `unix:${join(sockets, `${name}.sock`)}`
          return socket ? freeLoopbackAddress() : settings.listen
        }
        const ctrlListenOf = async (): Promise<string | undefined> => {
          if (part !== 'sessions') return undefined
          return ctrlSocket ? freeLoopbackAddress() : settings.ctrlListen
        }
        return {
          part,
          name,
          ops: await freeLoopbackAddress(),
          listen: await listenOf(),
          tls: await certificateOf(name, part),
          ctrlListen: await ctrlListenOf(),
        }
      }),
    ),
  )
  const peers = services.map((service) => {
    const addresses = addressed.flatMap(({ part, listen }) => (part === service ? listen : []))
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
  const sharedSockets: { readonly [P in Part]?: SharedSocket | undefined } = {
    gateway: socket,
    sessions: ctrlSocket,
  }
  return addressed.map(({ part, name, ops, listen, tls, ctrlListen }, at) => ({
    part,
    name,
    ops,
    listen,
    ctrlListen,
    stage: part === 'gateway' ? 'gateway' : 'services',
    sharedSockets: [sharedSockets[part] ?? []].flat(),
    entry: join(projectRoot, part === 'gateway' ? 'gateway' : `services/${part}`, entry),
    env: {
      ...shared,
      OVERLAY_OPS_LISTEN: ops,
      OVERLAY_TLS: tls,
      ...(sharedSockets[part] && { [SHARED_SOCKETS]: `${part}:${FIRST_SOCKET}` }),
      OVERLAY_GRPC_HEALTH_LISTEN: healthListens[at] ?? '',
      ...(part === 'gateway'
        ? {
            OVERLAY_LISTEN: listen,
            ...(console && { OVERLAY_CONSOLE: console }),
          }
        : {
            OVERLAY_RPC_LISTEN: listen,
            DATABASE_URL: urlOf(part),
            NATS_URL: natsUrl,
            OVERLAY_NATS_TLS: settings.natsUrl === undefined ? tls : (settings.natsTls ?? ''),
          }),
      ...(ctrlListen !== undefined && {
        OVERLAY_CTRL_LISTEN: ctrlListen,
        OVERLAY_CTRL_ID: name,
      }),
      ...((part === 'pki' || part === 'identity') && { OVERLAY_KEY_SECRET: secrets.keySecrets[part] }),
    },
  }))
}

/** The n-th replicas of all parts share the n-th process: see all-parts.ts. */
export function inWholeProcesses(instances: readonly Instance[], count: number): ProcessPlan[] {
  return Array.from({ length: count }, (_, at) =>
    inOneProcess(
      count > 1 ? `overlay-${at + 1}` : 'overlay',
      parts.flatMap((part) => instances.filter((one) => one.part === part).slice(at, at + 1)),
    ),
  )
}

function inOneProcess(name: string, instances: readonly Instance[]): ProcessPlan {
  const [gateway] = instances
  if (!gateway) throw new Error('no parts')
  const listening = instances.filter(({ sharedSockets }) => sharedSockets.length > 0)
  return {
    name,
    entry: join(projectRoot, 'launcher/dist/all-parts.js'),
    ops: gateway.ops,
    stage: 'gateway',
    sharedSockets: listening.flatMap(({ sharedSockets }) => sharedSockets),
    env: {
      ...gateway.env,
      UV_THREADPOOL_SIZE: process.env.UV_THREADPOOL_SIZE ?? '12', // hashes of passwords must not delay look-ups of names
      OVERLAY_PARTS: JSON.stringify(Object.fromEntries(instances.map(({ part, env }) => [part, env]))),
      [SHARED_SOCKETS]: listening.map(({ part }, at) => `${part}:${FIRST_SOCKET + at}`).join(),
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
