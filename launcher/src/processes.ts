import { join, resolve } from 'node:path'
import { balancerAddress } from './balancer.js'
import type { Secrets } from './home.js'
import { freePort } from './ports.js'
import { projectRoot } from './project-root.js'
import { type Service, services } from './schemas.js'
import type { LauncherSettings } from './settings.js'

export const parts = ['gateway', ...services] as const
export type Part = (typeof parts)[number]

/** How many of each part run. */
export type Scale = Readonly<Record<Part, number>>

/** One process of the product. */
export interface Instance {
  readonly name: string
  readonly part: Part
  readonly entry: string
  readonly env: Readonly<Record<string, string>>
  readonly ops: string // address of its health
  readonly listen: string // address of what it serves
}

export interface Plan {
  readonly settings: LauncherSettings
  readonly scale: Scale
  readonly secrets: Secrets
  readonly natsUrl: string
  urlOf(service: Service): string
}

/** Gives every process its ports and its environment. They keep them when they are started again. */
export async function planInstances({ settings, scale, secrets, natsUrl, urlOf }: Plan): Promise<Instance[]> {
  const places = await Promise.all(
    parts.flatMap((part) =>
      Array.from({ length: scale[part] }, async (_, at) => {
        const behindBalancer = part !== 'gateway' || scale.gateway > 1
        return {
          part,
          name: scale[part] > 1 ? `${part}-${at + 1}` : part,
          ops: await loopback(),
          listen: behindBalancer ? await loopback() : settings.listen,
        }
      }),
    ),
  )
  const peers = services.map((service) => {
    const addresses = places.flatMap(({ part, listen }) => (part === service ? listen : []))
    return [`OVERLAY_${service.toUpperCase()}_PEERS`, addresses.join()]
  })
  const shared = {
    ...Object.fromEntries(peers),
    NATS_URL: natsUrl,
    OVERLAY_PEER_SECRET: secrets.peerSecret,
    OVERLAY_ADDRESS: settings.address,
    OVERLAY_CTRL_ADDRESS: settings.ctrlAddress,
    OVERLAY_HOME: settings.home,
    OVERLAY_SNAPSHOTS: resolve(settings.snapshots ?? join(settings.home, 'snapshots')),
    OVERLAY_LOG_LEVEL: settings.logLevel,
    OVERLAY_LOG_FORMAT: settings.logFormat,
  }
  return places.map(({ part, name, ops, listen }) => ({
    part,
    name,
    ops,
    listen,
    entry: join(projectRoot, part === 'gateway' ? 'gateway' : `services/${part}`, 'dist/main.js'),
    env: {
      ...shared,
      OVERLAY_OPS_LISTEN: ops,
      ...(part === 'gateway'
        ? {
            OVERLAY_LISTEN: listen,
            ...(scale.gateway > 1 && { OVERLAY_PROXY_PROTOCOL_FROM: balancerAddress }),
          }
        : { OVERLAY_RPC_LISTEN: listen, DATABASE_URL: urlOf(part) }),
      ...((part === 'pki' || part === 'identity') && { OVERLAY_KEY_SECRET: secrets.keySecrets[part] }),
    },
  }))
}

const loopback = async (): Promise<string> => `127.0.0.1:${await freePort()}`
